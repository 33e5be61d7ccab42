// Gemini CLI, whose MCP client speaks 2025-06-18, against the hub and a scripted model on loopback: the model asks for
// one tool, and its next request must carry the tool's result. Run by scripts/test-mcp, without an account.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'

const { BELLWIRE_URL, BELLWIRE_TOKEN, HOME } = process.env
const ENTRY = 'node_modules/@google/gemini-cli/bundle/gemini.js'
const bodies = []

/** What the model says: a call of the tool as long as there is no result of one, then a last word. */
function turn(request) {
  const declared = (request.tools ?? []).flatMap(tool => tool.functionDeclarations ?? []).map(tool => tool.name)
  const name = declared.find(name => name.endsWith('send_notification'))
  const parts = request.contents.flatMap(content => content.parts ?? [])
  if (name && !parts.some(part => part.functionResponse)) {
    return { functionCall: { name, args: { message: 'Gemini says hello', type: 'info' } } }
  }
  return { text: 'Done.' }
}

const model = http.createServer((request, response) => {
  let text = ''
  request.on('data', chunk => { text += chunk })
  request.on('end', () => {
    const body = JSON.parse(text || '{}')
    const said = body.contents ? turn(body) : { text: '' }
    const candidate = { content: { role: 'model', parts: [said] }, finishReason: 'STOP', index: 0 }
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 }
    const answer = JSON.stringify({ candidates: [candidate], usageMetadata, totalTokens: 2 })
    bodies.push(body)
    const streams = request.url.includes('streamGenerateContent')
    response.writeHead(200, { 'Content-Type': streams ? 'text/event-stream' : 'application/json' })
    response.end(streams ? `data: ${answer}\n\n` : answer)
  })
})
await new Promise(resolve => model.listen(0, '127.0.0.1', resolve))

const home = await mkdtemp(path.join(HOME, 'gemini-'))
await mkdir(path.join(home, '.gemini'))
await writeFile(path.join(home, '.gemini', 'settings.json'), JSON.stringify({
  security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
  general: { disableAutoUpdate: true, enableAutoUpdate: false },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  mcpServers: {
    bellwire: { httpUrl: `${BELLWIRE_URL}/mcp`, headers: { Authorization: `Bearer ${BELLWIRE_TOKEN}` }, trust: true },
  },
}))
const env = {
  PATH: process.env.PATH, HOME: home, GEMINI_API_KEY: 'none', NO_COLOR: '1',
  GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${model.address().port}`,
}
const gemini = spawn(process.execPath, [path.resolve(ENTRY), '-m', 'gemini-2.5-pro', '-y', '-p', 'Say hello to Ada.'], {
  cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'],
})
let said = ''
gemini.stdout.on('data', chunk => { said += chunk })
gemini.stderr.on('data', chunk => { said += chunk })
const code = await new Promise(resolve => gemini.on('exit', resolve))
model.close()
const results = bodies.flatMap(body => body.contents ?? []).flatMap(content => content.parts ?? [])
  .filter(part => part.functionResponse).map(part => JSON.stringify(part.functionResponse))
assert.equal(code, 0, said)
assert.ok(results.length > 0, `Gemini CLI found no tool of the hub:\n${said}`)
assert.ok(results.some(result => result.includes('notification_created')), results.join('\n'))
console.log('ok  gemini-cli: send_notification')
