// A scripted model on loopback that speaks the protocols of four harnesses. It asks for one tool after the other, as its
// script says, and keeps every request: what a harness sent is what a model would have read.
import http from 'node:http'
import * as anthropic from './models/anthropic.mjs'
import * as chat from './models/chat.mjs'
import * as gemini from './models/gemini.mjs'
import * as responses from './models/responses.mjs'

const PROTOCOLS = [anthropic, responses, gemini, chat]

export class ScriptedModel {
  /** The requests of the agent's own loop, as [kind, text] parts. */
  turns = []
  /** Problems, which a test prints when it fails. */
  log = []
  #script = []
  #number = 0

  static async start() {
    const model = new ScriptedModel()
    model.server = http.createServer((request, response) => {
      let text = ''
      request.on('data', chunk => { text += chunk })
      request.on('end', () => model.#take(request, text, response).catch(error => model.log.push(error.stack)))
    })
    await new Promise(resolve => model.server.listen(0, '127.0.0.1', resolve))
    model.url = `http://127.0.0.1:${model.server.address().port}`
    return model
  }

  /** Steps `{tool: [names], arguments}` or `{say}`, one for each request of the agent, which may do something `before` they are
   * answered; after them it says that it is done. Instead of a list, a function may choose the step for the parts of a request. */
  play(script) {
    this.#script = script
    this.turns = []
  }

  async #take(request, text, response) {
    const protocol = PROTOCOLS.find(protocol => protocol.matches(request.url))
    if (!protocol || request.method !== 'POST') {
      this.log.push(`${request.method} ${request.url}`)
      response.writeHead(request.url === '/' ? 200 : 404, { 'Content-Type': 'application/json' })
      return response.end('{}')
    }
    const body = JSON.parse(text)
    this.#number += 1
    const names = protocol.toolNames(body)
    // A request without tools is not the agent's loop: a title, a summary.
    if (names.length === 0) return protocol.answer(response, { say: 'A title' }, this.#number, request.url)
    const turn = protocol.parts(body)
    this.turns.push(turn)
    const script = this.#script
    const step = (typeof script === 'function' ? script(turn) : script[this.turns.length - 1]) ?? { say: 'Done.' }
    await step.before?.()
    const call = step.tool && names.find(name => step.tool.some(tool => name === tool || name.endsWith(`_${tool}`) || name.endsWith(`/${tool}`)))
    if (step.tool && !call) this.log.push(`no tool ${step.tool} among ${names.join(' ')}`)
    protocol.answer(response, call ? { call, arguments: step.arguments(call, JSON.stringify(turn)) } : { say: step.say ?? 'Done.' }, this.#number, request.url)
  }

  close() {
    this.server.close()
    this.server.closeAllConnections()
  }
}
