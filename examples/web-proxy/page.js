import { connect } from '/elements.js';

connect({
  user: 'ada',
  // The browser sends the cookie of this site; the server adds the token.
  fetch: (path, init) => fetch(`/bellwire${path}`, init),
});
