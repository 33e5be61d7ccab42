// Serves files of the project to a browser, under the policy that docs/web.md promises to be enough.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import path from 'node:path';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json' };

/** The fenced blocks of a document: language and body. */
export async function blocksOf(document) {
  const text = await readFile(document, 'utf8');
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, body]) => ({ language, body }));
}

async function documentedPolicy(root) {
  const found = (await blocksOf(path.join(root, 'docs/web.md'))).filter(({ body }) => body.startsWith("default-src 'none'"));
  if (found.length !== 1) throw new Error('docs/web.md has no policy');
  return found[0].body.replace(/\s+/g, ' ').trim();
}

/** `extra` maps paths to contents that are no files. */
export async function serveSite(root, extra = {}) {
  const site = { hub: '', origin: '', close: () => server.close() };
  const policy = await documentedPolicy(root);
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const name = pathname.endsWith('/') ? `${pathname}index.html` : pathname;
    const file = path.join(root, path.normalize(decodeURIComponent(name)));
    const body = extra[pathname] ?? (await readFile(file).catch(() => null));
    const headers = {
      'content-type': `${TYPES[path.extname(file)] ?? 'text/plain'}; charset=utf-8`,
      'content-security-policy': policy.replaceAll('https://bell.example.org', site.hub), 'cache-control': 'no-store',
    };
    response.writeHead(body === null ? 404 : 200, headers).end(body ?? 'not found');
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  site.origin = `http://127.0.0.1:${server.address().port}`;
  return site;
}
