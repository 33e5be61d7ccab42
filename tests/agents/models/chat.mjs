// OpenAI's Chat Completions API, as OpenCode speaks it.
export const matches = url => url.startsWith('/v1/chat/completions')

export const toolNames = body => (body.tools ?? []).map(tool => tool.function.name)

export const resultCount = body => body.messages.filter(message => message.role === 'tool').length

const text = content => (typeof content === 'string' ? content : (content ?? []).map(part => part.text ?? '').join('\n'))

export const parts = body => body.messages.map(({ role, content, tool_calls }) =>
  [role === 'tool' ? 'result' : role, text(content) + (tool_calls ? JSON.stringify(tool_calls) : '')])

export function answer(response, step, number) {
  const id = `chatcmpl-${number}`
  const send = (delta, finish_reason = null) => response.write(`data: ${JSON.stringify({
    id, object: 'chat.completion.chunk', created: 1, model: 'test', choices: [{ index: 0, delta, finish_reason }],
  })}\n\n`)
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  if (step.call) {
    const call = { name: step.call, arguments: JSON.stringify(step.arguments) }
    send({ role: 'assistant', tool_calls: [{ index: 0, id: `call_${number}`, type: 'function', function: call }] })
  } else {
    send({ role: 'assistant', content: step.say })
  }
  send({}, step.call ? 'tool_calls' : 'stop')
  response.end('data: [DONE]\n\n')
}
