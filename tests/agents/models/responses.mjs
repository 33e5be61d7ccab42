// OpenAI's Responses API, as Codex speaks it.
export const matches = url => url.startsWith('/v1/responses')

// Codex groups the tools of an MCP server in a namespace.
export const toolNames = body => (body.tools ?? []).flatMap(tool =>
  tool.type === 'namespace' ? tool.tools.map(inner => `${tool.name}/${inner.name}`) : [tool.name])

export const resultCount = body => body.input.filter(item => item.type?.endsWith('_call_output')).length

export const parts = body => [
  ['system', body.instructions ?? ''],
  ...body.input.flatMap(item => {
    if (item.type?.endsWith('_call_output')) return [['result', JSON.stringify(item.output)]]
    if (item.type === 'message' || item.role) return (item.content ?? []).map(part => [item.role, part.text ?? ''])
    return [[item.type, JSON.stringify(item)]]
  }),
]

export function answer(response, step, number) {
  const send = (type, data) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  send('response.created', { response: { id: `resp_${number}` } })
  const [namespace, name] = step.call?.includes('/') ? step.call.split('/') : [undefined, step.call]
  const item = step.call
    ? { type: 'function_call', id: `fc_${number}`, call_id: `call_${number}`, name, namespace,
        arguments: JSON.stringify(step.arguments), status: 'completed' }
    : { type: 'message', id: `msg_${number}`, role: 'assistant', status: 'completed',
        content: [{ type: 'output_text', text: step.say, annotations: [] }] }
  send('response.output_item.added', { output_index: 0, item })
  send('response.output_item.done', { output_index: 0, item })
  const usage = { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1,
    output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 }
  send('response.completed', { response: { id: `resp_${number}`, status: 'completed', output: [item], usage } })
  response.end()
}
