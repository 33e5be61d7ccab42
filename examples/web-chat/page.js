import { connect, notificationsFrom } from '../../web/dist/elements.js';
import { answer } from './agent.js';

// Without a `user` there is no hub: a pressed prompt is the page's to send.
connect({ onPrompt: (prompt) => void say(prompt) });

async function say(text) {
  line(`You: ${text}`);
  // One copy of the stream is for the chat, one for the toasts.
  const [chat, toasts] = answer(text).tee();
  notificationsFrom(toasts, { onRefused: (reason) => console.warn(`A notification was not shown: ${reason}`) });
  const written = line('Agent: ');
  for await (const chunk of chat) if (chunk.type === 'text-delta') written.textContent += chunk.delta;
}

function line(text) {
  const item = document.createElement('li');
  item.textContent = text;
  document.querySelector('.chat').append(item);
  return item;
}

const form = document.querySelector('form');
form.addEventListener('submit', (event) => {
  event.preventDefault();
  void say(form.elements.text.value);
  form.reset();
});
