// Google's generateContent API, as Gemini CLI speaks it.
export const matches = url => url.includes('enerateContent')

export const toolNames = body =>
  (body.tools ?? []).flatMap(tool => tool.functionDeclarations ?? []).map(tool => tool.name)

const all = body => (body.contents ?? []).flatMap(({ role, parts }) => (parts ?? []).map(part => ({ role, ...part })))

export const resultCount = body => all(body).filter(part => part.functionResponse).length

export const parts = body => [
  ...(body.systemInstruction?.parts ?? []).map(part => ['system', part.text ?? '']),
  ...all(body).map(part => part.functionResponse
    ? ['result', part.functionResponse.response.output ?? JSON.stringify(part.functionResponse.response)]
    : [part.role, part.text ?? JSON.stringify(part)]),
]

export function answer(response, step, number, url) {
  const part = step.call ? { functionCall: { name: step.call, args: step.arguments } } : { text: step.say }
  const candidate = { content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }
  const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 }
  const said = JSON.stringify({ candidates: [candidate], usageMetadata, responseId: `r${number}` })
  const streams = url.includes('streamGenerateContent')
  response.writeHead(200, { 'Content-Type': streams ? 'text/event-stream' : 'application/json' })
  response.end(streams ? `data: ${said}\n\n` : said)
}
