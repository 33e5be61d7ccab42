// The first page of docs/web.md, as it is printed there, with the module that the hub serves.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { newContext, newPerson, stage, toast } from './browser.mjs';
import { blocksOf } from './site.mjs';

const root = process.env.BELLWIRE_ROOT;
const extra = {};
const here = stage({ extra });

test('docs/web.md: the elements and the script are enough', async () => {
  const blocks = await blocksOf(path.join(root, 'docs/web.md'));
  const [page] = blocks.filter(({ language }) => language === 'html');
  const [script] = blocks.filter(({ language }) => language === 'js');
  const person = await newPerson(here);
  const replaced = { "'https://bell.example.org/elements.js'": `'${here.hub.url}/elements.js'`, "url: 'https://bell.example.org'": `url: '${here.hub.url}'`, "'ada'": `'${person.user}'`, 'bw_…': person.token };
  let text = script.body;
  for (const [printed, real] of Object.entries(replaced)) {
    assert.ok(text.includes(printed), printed);
    text = text.replace(printed, real);
  }
  extra['/documented/'] = `<!doctype html><html lang="en"><meta charset="utf-8"><title>As documented</title>${page.body}`;
  extra['/documented/page.js'] = text;
  const context = await newContext(here);
  const tab = await context.newPage();
  await tab.goto(`${here.site.origin}/documented/`);
  await tab.locator('bellwire-inbox[data-connection=live]').waitFor();
  const id = await person.show({ message: 'Hello from the documentation', duration: 0 });
  await toast(tab, id).getByText('Hello from the documentation').waitFor();
  assert.equal(await tab.locator('bellwire-inbox .badge').textContent(), '1');
  assert.deepEqual(context.faults, []);
  await context.close();
});
