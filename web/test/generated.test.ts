// What is generated and committed is what the sources make.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import openapiTS, { astToString } from 'openapi-typescript';
import { expect, test } from 'vitest';
import { VARIABLES } from '../src/elements/theme.ts';

const web = path.resolve(import.meta.dirname, '..');

test('src/api.d.ts has the types of docs/openapi.json; npm run types writes it', async () => {
  const description = new URL('../../docs/openapi.json', import.meta.url);
  const types = astToString(await openapiTS(description));
  const committed = readFileSync(path.join(web, 'src/api.d.ts'), 'utf8');
  expect(committed.endsWith(types), 'run `npm run types` in web/').toBe(true);
});

test('dist is what the sources build; make web writes it', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'bellwire-dist-'));
  try {
    execFileSync(process.execPath, ['build.mjs', folder], { cwd: web, stdio: 'pipe' });
    expect(tree(folder)).toEqual(tree(path.join(web, 'dist')));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 60_000);

test('the modules can be imported where there is no page', () => {
  const script = `
    import { createElement } from 'react';
    import { renderToString } from 'react-dom/server';
    import { connect } from './dist/elements.js';
    import { BellwireInbox, BellwireToaster, useBellwire, useUnread } from './dist/react.js';
    const App = () => {
      const unread = useUnread(useBellwire({ user: 'ada', token: 'bw_' }));
      return createElement('main', null, unread, createElement(BellwireToaster, { hotkey: 'F8' }), createElement(BellwireInbox));
    };
    console.log(typeof connect, renderToString(createElement(App)));`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { cwd: web, encoding: 'utf8' });
  expect(printed.trim()).toBe('function <main>0<bellwire-toaster hotkey="F8"></bellwire-toaster><bellwire-inbox></bellwire-inbox></main>');
});

function tree(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files.map((file) => path.join(file.parentPath, file.name)).sort();
  return Object.fromEntries(names.map((name) => [path.relative(folder, name), readFileSync(name, 'utf8')]));
}

test('docs/web.md lists every variable that a page can set', () => {
  const guide = readFileSync(path.join(web, '../docs/web.md'), 'utf8');
  const styles = readFileSync(path.join(web, 'src/elements/theme.ts'), 'utf8') + readFileSync(path.join(web, 'src/elements/toast-styles.ts'), 'utf8');
  const used = [...styles.matchAll(/--bellwire-[a-z-]+/g)].map(([name]) => name);
  const severity = /^--bellwire(-(?:success|warning|error))$/;
  for (const name of new Set(used)) expect(guide).toContain(`\`${name.replace(severity, '$1')}\``);
  for (const name of VARIABLES) expect(used).toContain(name);
});
