import { describe, expect, it } from 'vitest';
import { docsAssets, docsContentSecurityPolicy } from '../../../src/rpc/openapi/docs-page.ts';

const textOf = (path: string) => String(docsAssets.get(path)?.().body);

describe('the documentation page', () => {
  it('is HTML', () => {
    expect(docsAssets.get('/docs')?.().contentType).toBe('text/html; charset=utf-8');
  });

  it('refers to its own files only, and each of them exists', () => {
    const html = textOf('/docs');
    const references = [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map((match) => match[1] ?? '');
    expect(references.length).toBeGreaterThan(3);
    for (const reference of references) {
      if (reference === '/openapi.json') continue;
      expect([reference, docsAssets.get(reference)?.().body.length]).toEqual([reference, expect.any(Number)]);
    }
  });

  it('runs under a policy without inline scripts, eval or other hosts', () => {
    const html = textOf('/docs');
    expect(html).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\son\w+=|style=|https?:\/\//);
    expect(docsContentSecurityPolicy).not.toMatch(/unsafe|https?:|\*/);
    expect(docsContentSecurityPolicy).toContain("default-src 'none'");
  });

  it('asks no validator on the internet', () => {
    const script = textOf('/docs/start.js');
    expect(script).toContain('validatorUrl: null');
    expect(script).not.toMatch(/https?:/);
  });
});
