import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { suiteDir } from '../support/running-node.ts';
import { jsonLinesOf, testWith } from './toolchain.ts';
import { requests, snippet } from './webhook-snippets.ts';

const folder = suiteDir();

const harness = `package main

import (
	"encoding/base64"
	"encoding/json"
	"os"

	"example/webhook"
)

func main() {
	var cases []struct {
		Name, Secret, Body string
		Headers            map[string]string
		NowS               int64
	}
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	for _, c := range cases {
		body, _ := base64.StdEncoding.DecodeString(c.Body)
		genuine, err := webhook.IsFromService(c.Secret, c.Headers, body, c.NowS)
		if err != nil {
			panic(err)
		}
		json.NewEncoder(os.Stdout).Encode([]any{c.Name, genuine})
	}
}
`;

testWith(
  'go',
  'the Go of webhooks.md takes what the service signed, and nothing else',
  () => {
    mkdirSync(join(folder, 'webhook'));
    writeFileSync(join(folder, 'go.mod'), 'module example\n\ngo 1.21\n');
    writeFileSync(join(folder, 'webhook', 'verify.go'), snippet('go'));
    writeFileSync(join(folder, 'main.go'), harness);
    const env = { ...process.env, GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local' };
    expect(jsonLinesOf('go', ['run', '.'], requests, { cwd: folder, env })).toEqual(
      requests.map(({ name, isGenuine }) => [name, isGenuine]),
    );
  },
  120_000,
);
