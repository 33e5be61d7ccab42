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
  const read = (name) => readFile(path.join(home, name), 'utf8').catch(() => '');
  let child;
  const end = async (signal) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once('exit', done));
    child.kill(signal);
    await ended;
  };
  const start = async (port) => {
    await rm(path.join(home, 'hub.json'), { force: true });
    child = spawn(process.env.BELLWIRE, ['serve', '--port', port, '--data-dir', home], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (data) => (said += data));
    const started = async () => {
      if (child.exitCode !== null) throw new Error(`the hub ended with ${child.exitCode}`);
      return read('hub.json');
    };
    const note = await until('the hub', started).catch(async (error) => {
      await end();
      throw new Error(`${error.message}:\n${said}`);
    });
    return JSON.parse(note).url;
  };
  const stop = async () => {
    await end();
    await rm(home, { recursive: true, force: true });
  };
  const url = await start('0').catch(async (error) => {
    await rm(home, { recursive: true, force: true });
    throw error;
  });
  const admin = (await read('admin.token')).trim();
  const call = async (token, method, where, body) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const answer = await fetch(url + where, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${where}: ${answer.status} ${text}`);
    return text && JSON.parse(text);
  };
  const token = async (scope, more = {}) =>
    (await call(admin, 'POST', '/v1/tokens', { scope, user_id: 'ada', origin: 'butler', ...more })).token;
  return {
    url, admin, call, token, stop,
    /** Ends it at once, as a crash does. */
    kill: () => end('SIGKILL'),
    /** Starts it again with the same data, at the same address. */
    restart: () => start(new URL(url).port),
  };
}

/** Telegram's stand-in, with what a person types into the chat with the bot. */
export async function startTelegram() {
  const child = spawn(process.env.TELEGRAM_STANDIN, [], { stdio: ['ignore', 'pipe', 'inherit'] });
  const { url, token } = JSON.parse(await new Promise((ready) => child.stdout.once('data', (data) => ready(String(data)))));
  const type = (user, text) => fetch(`${url}/standin/type`, { method: 'POST', body: JSON.stringify({ user, text }) });
  return { url, token, type, stop: () => child.kill() };
}
