import { describe, expect, it } from 'vitest';
import { docsAsset, docsContentSecurityPolicy, docsPaths } from '../../../src/rpc/openapi/docs-page.ts';

describe('the documentation page', () => {
  it('is HTML, with and without a trailing slash', () => {
    expect(docsAsset('/docs')?.contentType).toBe('text/html; charset=utf-8');
    expect(docsAsset('/docs/')).toBe(docsAsset('/docs'));
  });

  it('refers to files of this page alone, and each of them is there', () => {
    const html = String(docsAsset('/docs')?.body);
    const references = [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map((match) => match[1] ?? '');
    expect(references.length).toBeGreaterThan(3);
    for (const reference of references) {
      if (reference === '/openapi.json') continue;
      expect([reference, docsAsset(reference)?.body.length]).toEqual([reference, expect.any(Number)]);
    }
    expect(docsPaths().every((path) => docsAsset(path) !== null)).toBe(true);
  });

  it('runs under a policy without inline scripts, eval or other hosts', () => {
    const html = String(docsAsset('/docs')?.body);
    expect(html).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\son\w+=|style=|https?:\/\//);
    expect(docsContentSecurityPolicy).not.toMatch(/unsafe|https?:|\*/);
    expect(docsContentSecurityPolicy).toContain("default-src 'none'");
  });

  it('asks no validator on the internet', () => {
    const script = String(docsAsset('/docs/start.js')?.body);
    expect(script).toContain('validatorUrl: null');
    expect(script).not.toMatch(/https?:/);
  });

  it.each([
    '/docs/../package.json',
    '/docs/package.json',
    '/docs/swagger-ui.css.map',
    '/docs/%2e%2e/package.json',
    '/docs/index.html',
    '/docs/swagger-ui.css/',
    '/docs//swagger-ui.css',
    '/docs/__proto__',
    '/docsx',
    '/',
    '',
  ])('%j is not part of it', (path) => {
    expect(docsAsset(path)).toBeNull();
  });
});
