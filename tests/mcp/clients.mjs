// The official TypeScript clients, both generations and a release of each older revision, over HTTP and over stdio: each
// calls every tool with the example of its own description. Run by scripts/test-mcp.
import assert from 'node:assert/strict'
import { Client as First } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as FirstStdio } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as FirstHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Client as Second, StreamableHTTPClientTransport as SecondHttp } from '@modelcontextprotocol/client'
import { StdioClientTransport as SecondStdio } from '@modelcontextprotocol/client/stdio'
import { Client as Client2024 } from 'sdk-2024-11-05/client/index.js'
import { SSEClientTransport as Sse2024 } from 'sdk-2024-11-05/client/sse.js'
import { StdioClientTransport as Stdio2024 } from 'sdk-2024-11-05/client/stdio.js'
import { Client as ClientMarch } from 'sdk-2025-03-26/client/index.js'
import { StdioClientTransport as StdioMarch } from 'sdk-2025-03-26/client/stdio.js'
import { StreamableHTTPClientTransport as HttpMarch } from 'sdk-2025-03-26/client/streamableHttp.js'
import { Client as ClientJune } from 'sdk-2025-06-18/client/index.js'
import { StdioClientTransport as StdioJune } from 'sdk-2025-06-18/client/stdio.js'
import { StreamableHTTPClientTransport as HttpJune } from 'sdk-2025-06-18/client/streamableHttp.js'

const { BELLWIRE, BELLWIRE_URL, BELLWIRE_TOKEN } = process.env
const requestInit = { headers: { Authorization: `Bearer ${BELLWIRE_TOKEN}` } }
const server = {
  command: BELLWIRE,
  args: ['mcp', '--conversation', 'chat'],
  env: { BELLWIRE_URL, BELLWIRE_TOKEN, HOME: process.env.HOME },
}
const url = new URL(`${BELLWIRE_URL}/mcp`)

async function publish(tool) {
  const event = {
    type: 'tool.call.failure', source: 'ci', severity: 'error', conversation_id: 'chat', payload: { tool_name: tool },
  }
  const headers = { ...requestInit.headers, 'Content-Type': 'application/json' }
  const answer = await fetch(`${BELLWIRE_URL}/v1/events`, { method: 'POST', headers, body: JSON.stringify(event) })
  assert.equal(answer.status, 202)
}

function checked(result) {
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent)
  return result.structuredContent
}

// The revision that a client's handshake settles on; clients since 2026-07-28 have none.
function handshakeOf(client) {
  const handshake = {}
  const request = client.request.bind(client)
  client.request = async (message, ...rest) => {
    const result = await request(message, ...rest)
    if (message.method === 'initialize') handshake.revision = result.protocolVersion
    return result
  }
  return handshake
}

async function meet(name, client, transport, revision) {
  const errors = []
  client.onerror = error => errors.push(error)
  const handshake = handshakeOf(client)
  await client.connect(transport)
  if (revision) assert.equal(handshake.revision, revision, name)
  const { tools } = await client.listTools()
  assert.ok(tools.length >= 2)
  for (const tool of tools) {
    assert.equal(tool.outputSchema.type, 'object')
    const example = JSON.parse(tool.description.split('Example: ').at(-1))
    const result = await client.callTool({ name: tool.name, arguments: example })
    // This hub has no channel, and `notify` says so.
    const expected = tool.name === 'notify' ? { error_class: 'validation_error' } : { success: true }
    assert.partialDeepStrictEqual(checked(result), expected, `${tool.name}: ${result.content[0].text}`)
  }
  await publish(name)
  const read = checked(await client.callTool({ name: 'check_notifications', arguments: {} }))
  assert.ok(read.notifications.includes(name), JSON.stringify(read))
  const refused = await client.callTool({ name: 'notify_self', arguments: { message: '' } })
  assert.equal(refused.isError, true)
  assert.equal(checked(refused).action, 'validation_error')
  const { resources } = await client.listResources()
  if (resources.length > 0) {
    const { contents } = await client.readResource({ uri: resources[0].uri })
    assert.equal(JSON.parse(contents[0].text).conversation_id, 'chat')
  }
  // A client may go on after an event it could not read.
  assert.deepEqual(errors, [], name)
  await client.close()
  console.log(`ok  ${name}: ${tools.map(tool => tool.name).join(', ')}`)
}

const about = { name: 'test', version: '1' }
await meet('sdk-v1-http', new First(about), new FirstHttp(url, { requestInit }), '2025-11-25')
await meet('sdk-v1-stdio', new First(about), new FirstStdio(server), '2025-11-25')
await meet('client-v2-http', new Second(about), new SecondHttp(url, { requestInit }))
await meet('client-v2-stdio', new Second(about), new SecondStdio(server))
// 2024-11-05 has a transport of its own over HTTP. Its first request takes headers only from a fetch of ours.
const withToken = (url, init) => fetch(url, { ...init, headers: { ...init?.headers, ...requestInit.headers } })
const sse = new Sse2024(new URL(`${BELLWIRE_URL}/mcp/sse`), { requestInit, eventSourceInit: { fetch: withToken } })
await meet('sdk-2024-11-05-sse', new Client2024(about), sse, '2024-11-05')
await meet('sdk-2024-11-05-stdio', new Client2024(about), new Stdio2024(server), '2024-11-05')
await meet('sdk-2025-03-26-http', new ClientMarch(about), new HttpMarch(url, { requestInit }), '2025-03-26')
await meet('sdk-2025-03-26-stdio', new ClientMarch(about), new StdioMarch(server), '2025-03-26')
await meet('sdk-2025-06-18-http', new ClientJune(about), new HttpJune(url, { requestInit }), '2025-06-18')
await meet('sdk-2025-06-18-stdio', new ClientJune(about), new StdioJune(server), '2025-06-18')
