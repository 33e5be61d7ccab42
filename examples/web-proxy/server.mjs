// A web site whose server keeps the token of the hub. Node runs it as it is; there are no packages to install.
import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';

const { BELLWIRE_TOKEN: token, BELLWIRE_URL: hub = 'http://127.0.0.1:2355', PORT: port = '8000' } = process.env;
if (!token) throw new Error('BELLWIRE_TOKEN is missing: a token of scope user');

const here = new URL('.', import.meta.url);
const FILES = {
  '/': ['text/html', new URL('index.html', here)],
  '/page.js': ['text/javascript', new URL('page.js', here)],
  '/page.css': ['text/css', new URL('../web-page/page.css', here)],
  '/elements.js': ['text/javascript', new URL('../../web/dist/elements.js', here)],
};
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";
/** What a page may ask the hub for: the inbox and the stream of the person, nothing else. */
const ALLOWED = /^\/v1\/users\/ada\/(notifications(\/[A-Za-z0-9_-]+){0,3}|stream|settings)$/;
/** The headers of a request that the hub gets, and of an answer that the page gets. */
const PASSED = ['accept', 'content-type', 'last-event-id', 'idempotency-key'];
const RETURNED = ['content-type', 'retry-after'];

/** Whoever opens the page is signed in as ada. A real site has its own way. */
const session = randomBytes(16).toString('base64url');
const isSignedIn = (request) => (request.headers.cookie ?? '').includes(`session=${session}`);

async function passOn(request, response, path) {
  const { pathname, search } = new URL(path, hub);
  // Another site cannot make the browser send this header, nor a body of this type.
  const own = request.headers['sec-fetch-site'] === 'same-origin';
  const isWrite = request.method !== 'GET';
  const allowed = ALLOWED.test(pathname) && own && !(isWrite && pathname.endsWith('/settings'));
  if (!isSignedIn(request) || !allowed) return void response.writeHead(isSignedIn(request) ? 404 : 401).end();
  const headers = { authorization: `Bearer ${token}` };
  for (const name of PASSED) if (request.headers[name]) headers[name] = request.headers[name];
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const body = isWrite ? Buffer.concat(await request.toArray()) : undefined;
  const answer = await fetch(hub + pathname + search, { method: request.method, headers, body: body?.length ? body : undefined, signal: gone.signal });
  const kept = RETURNED.flatMap((name) => (answer.headers.has(name) ? [[name, answer.headers.get(name)]] : []));
  response.writeHead(answer.status, Object.fromEntries(kept));
  if (!answer.body) return void response.end();
  Readable.fromWeb(answer.body).on('error', () => response.destroy()).pipe(response);
}

const server = createServer((request, response) => {
  const file = FILES[request.url];
  if (file) {
    const [type, url] = file;
    response.writeHead(200, {
      'content-type': `${type}; charset=utf-8`, 'content-security-policy': POLICY,
      'set-cookie': `session=${session}; HttpOnly; SameSite=Strict; Path=/`,
    });
    createReadStream(url).pipe(response);
    return;
  }
  if (request.url.startsWith('/bellwire/')) {
    passOn(request, response, request.url.slice('/bellwire'.length)).catch(() => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    });
    return;
  }
  response.writeHead(404).end();
});
server.listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/`));
