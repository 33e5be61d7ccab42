// A hub for the tests of real agents.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

const { BELLWIRE } = process.env

/** Waits until `check` returns something. */
export async function until(check, what) {
  for (let tries = 0; tries < 600; tries += 1) {
    const found = await check()
    if (found) return found
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error(`never: ${what}`)
}

/** A hub in a home folder of its own, as a user's first start. */
export class Hub {
  static async start(home) {
    const hub = new Hub()
    hub.home = home
    hub.process = spawn(BELLWIRE, ['serve', '--port', '0'], {
      env: { PATH: process.env.PATH, HOME: home }, stdio: ['ignore', 'ignore', 'pipe'],
    })
    hub.process.stderr.resume()
    const note = path.join(home, '.local/share/bellwire/hub.json')
    hub.url = (await until(() => existsSync(note) && JSON.parse(readFileSync(note, 'utf8')), 'the hub starts')).url
    const token = path.join(home, '.local/share/bellwire/admin.token')
    hub.token = (await until(() => existsSync(token) && readFileSync(token, 'utf8').trim(), 'the token'))
    await until(() => fetch(`${hub.url}/readyz`).then(answer => answer.ok, () => false), 'the hub is ready')
    return hub
  }

  async call(method, where, body) {
    const answer = await fetch(this.url + where, {
      method, headers: { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' },
      body: body && JSON.stringify(body),
    })
    const text = await answer.text()
    assert.ok(answer.ok, `${method} ${where}: ${text}`)
    return text ? JSON.parse(text) : undefined
  }

  kill() {
    this.process.kill('SIGKILL')
  }
}
