// Anthropic's Messages API, as Claude Code speaks it.
export const matches = url => url.startsWith('/v1/messages') && !url.includes('count_tokens')

export const toolNames = body => (body.tools ?? []).map(tool => tool.name)

const blocks = body => body.messages.flatMap(message => (Array.isArray(message.content) ? message.content : []))

export const resultCount = body => blocks(body).filter(block => block.type === 'tool_result').length

/** The parts of the conversation in the order in which the model reads them: [kind, text]. */
export const parts = body => [
  ...(body.system ?? []).map(block => ['system', block.text ?? block]),
  ...body.messages.flatMap(({ role, content }) =>
    (typeof content === 'string' ? [{ type: 'text', text: content }] : content).map(block =>
      block.type === 'tool_result' ? ['result', JSON.stringify(block.content)] : [role, block.text ?? JSON.stringify(block)])),
]

export function answer(response, step, number) {
  const send = (type, data) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  const usage = { input_tokens: 1, output_tokens: 1 }
  const message = { id: `msg_${number}`, type: 'message', role: 'assistant', model: 'claude-test', content: [], usage }
  send('message_start', { message: { ...message, stop_reason: null, stop_sequence: null } })
  if (step.call) {
    const block = { type: 'tool_use', id: `toolu_${number}`, name: step.call, input: {} }
    send('content_block_start', { index: 0, content_block: block })
    const delta = { type: 'input_json_delta', partial_json: JSON.stringify(step.arguments) }
    send('content_block_delta', { index: 0, delta })
  } else {
    send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
    send('content_block_delta', { index: 0, delta: { type: 'text_delta', text: step.say } })
  }
  send('content_block_stop', { index: 0 })
  send('message_delta', { delta: { stop_reason: step.call ? 'tool_use' : 'end_turn', stop_sequence: null }, usage })
  send('message_stop', {})
  response.end()
}
