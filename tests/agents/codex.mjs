// Codex's app-server on standard input and output: the process that has a session when a terminal or an editor shows it.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** Ends a process, and waits for it: it could write to its home until then. */
export const ended = child => new Promise(resolve => {
  if (child.exitCode !== null || child.signalCode !== null) return resolve()
  child.once('exit', resolve)
  child.kill()
})

export class AppServer {
  #waiting = new Map()
  #number = 0

  static async start(program, { env, folder }) {
    const server = new AppServer()
    server.folder = folder
    server.process = spawn(program, ['app-server'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'ignore'] })
    createInterface({ input: server.process.stdout }).on('line', line => server.#take(JSON.parse(line)))
    await server.call('initialize', { clientInfo: { name: 'test', version: '1' }, capabilities: { experimentalApi: true } })
    server.process.stdin.write(`${JSON.stringify({ method: 'initialized' })}\n`)
    return server
  }

  call(method, params) {
    this.#number += 1
    this.process.stdin.write(`${JSON.stringify({ id: this.#number, method, params })}\n`)
    return new Promise((resolve, reject) => this.#waiting.set(this.#number, { method, resolve, reject }))
  }

  #take({ id, result, error }) {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error) waiting?.reject(new Error(`${waiting.method}: ${JSON.stringify(error)}`))
    else waiting?.resolve(result)
  }

  async hooks() {
    const { data } = await this.call('hooks/list', { cwds: [this.folder] })
    return data[0].hooks
  }

  /** What the command /hooks of its terminal does when the user trusts every hook. */
  async trustHooks() {
    const state = Object.fromEntries((await this.hooks()).map(hook => [hook.key, { trusted_hash: hook.currentHash }]))
    await this.call('config/batchWrite', { edits: [{ keyPath: 'hooks.state', value: state, mergeStrategy: 'upsert' }] })
  }

  /** Starts a session with a first prompt. */
  async startSession(prompt) {
    const { thread } = await this.call('thread/start', { cwd: this.folder })
    this.threadId = thread.id
    await this.prompt(prompt)
  }

  prompt(text) {
    return this.call('turn/start', { threadId: this.threadId, input: [{ type: 'text', text }] })
  }

  compact() {
    return this.call('thread/compact/start', { threadId: this.threadId })
  }

  close() {
    return ended(this.process)
  }
}
