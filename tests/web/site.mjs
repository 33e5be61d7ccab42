// Serves files of the project to a browser, under the strictest policy that docs/web.md promises to work.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import path from 'node:path';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json' };

export function policy(hub) {
  return [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", `connect-src 'self' ${hub}`, "base-uri 'none'", "form-action 'none'",
    "frame-ancestors 'none'", "require-trusted-types-for 'script'", 'trusted-types lit-html',
  ].join('; ');
}

/** `extra` maps paths to contents that are no files. */
export async function serveSite(root, extra = {}) {
  const site = { hub: '', origin: '', close: () => server.close() };
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const name = pathname.endsWith('/') ? `${pathname}index.html` : pathname;
    const file = path.join(root, path.normalize(decodeURIComponent(name)));
    const body = extra[pathname] ?? (await readFile(file).catch(() => null));
    const headers = { 'content-type': `${TYPES[path.extname(file)] ?? 'text/plain'}; charset=utf-8`, 'content-security-policy': policy(site.hub), 'cache-control': 'no-store' };
    response.writeHead(body === null ? 404 : 200, headers).end(body ?? 'not found');
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  site.origin = `http://127.0.0.1:${server.address().port}`;
  return site;
}
