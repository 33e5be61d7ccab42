// A hub of its own for a test: the real program on a free port, with its data in a folder that goes with it.
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

export async function until(what, check) {
  for (let tries = 0; tries < 600; tries++) {
    const found = await check();
    if (found) return found;
    await new Promise((later) => setTimeout(later, 50));
  }
  throw new Error(`waited 30 seconds for ${what}`);
}

export async function startHub(variables) {
  const home = await mkdtemp(path.join(tmpdir(), 'bellwire-web-'));
  const env = { PATH: process.env.PATH, HOME: home, ...variables };
  const child = spawn(process.env.BELLWIRE, ['serve', '--port', '0', '--data-dir', home], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (data) => (said += data));
  const read = (name) => readFile(path.join(home, name), 'utf8').catch(() => '');
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((end) => child.once('exit', end));
      child.kill();
      await ended;
    }
    await rm(home, { recursive: true, force: true });
  };
  const started = async () => {
    if (child.exitCode !== null) throw new Error(`the hub ended with ${child.exitCode}`);
    return read('hub.json');
  };
  const note = await until('the hub', started).catch(async (error) => {
    await stop();
    throw new Error(`${error.message}:\n${said}`);
  });
  const { url } = JSON.parse(note);
  const admin = (await read('admin.token')).trim();
  const call = async (token, method, where, body) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const answer = await fetch(url + where, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${where}: ${answer.status} ${text}`);
    return text && JSON.parse(text);
  };
  const token = async (scope) => (await call(admin, 'POST', '/v1/tokens', { scope, user_id: 'ada', origin: 'butler' })).token;
  return { url, call, token, stop };
}
