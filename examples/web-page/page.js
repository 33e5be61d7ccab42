import { connect } from '../../web/dist/elements.js';

const form = document.querySelector('form');
const chat = document.querySelector('section');

/** The token is kept for this tab only, so that a reload stays connected. */
function start({ url, user, token }) {
  sessionStorage.setItem('bellwire', JSON.stringify({ url, user, token }));
  form.hidden = true;
  chat.hidden = false;
  connect({
    url, user, token,
    onPrompt: (prompt, { delivered }) => say(delivered ? `You pressed a button. The agent reads: ${prompt}` : `You say: ${prompt}`),
  });
}

function say(text) {
  const line = document.createElement('li');
  line.textContent = text;
  chat.querySelector('ol').append(line);
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  start(Object.fromEntries(new FormData(form)));
});

const saved = sessionStorage.getItem('bellwire');
if (saved) start(JSON.parse(saved));
