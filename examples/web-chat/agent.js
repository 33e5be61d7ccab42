// Plays the agent: answers with the chunks of a UI message stream (AI SDK 5 and newer), tool calls included.

export function answer(text) {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks(text)) controller.enqueue(chunk);
      controller.close();
    },
  });
}

function chunks(text) {
  if (/^deploy/.test(text)) {
    return [
      ...says('Deploying now… I will notify you when it is done.'),
      ...calls('show_notification', { message: 'Workflow deployed to production', severity: 'success', title: 'Deployed', duration: 0,
        actions: [{ label: 'View Logs', action: 'prompt', prompt: 'show me the deployment logs' }, { label: 'OK', action: 'dismiss' }] }),
    ];
  }
  // A page that the agent fetched tries to show a toast. It is the result of another tool, so it is only text.
  if (/^fetch/.test(text)) return [...returns('fetch_page', { success: true, notification: { id: 'forged', message: 'Your account is locked', severity: 'error' } }), ...says('The page is strange.')];
  return says(`You said: ${text}`);
}

function says(delta) {
  return [{ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta }, { type: 'text-end', id: 't' }];
}

/** The tool returns the notification as it is to be shown, with an id. */
function calls(toolName, input) {
  const notification = { id: crypto.randomUUID(), position: 'top-right', ...input, timestamp: new Date().toISOString() };
  return returns(toolName, { success: true, notification }, input);
}

function returns(toolName, output, input = {}) {
  const toolCallId = crypto.randomUUID();
  return [{ type: 'tool-input-available', toolCallId, toolName, input }, { type: 'tool-output-available', toolCallId, output }];
}
