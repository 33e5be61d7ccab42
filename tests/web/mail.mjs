// The least of a mail server: takes every mail and keeps its text, or refuses it while `refuses` is set.
import net from 'node:net';

export async function mailServer() {
  const mails = [];
  const state = { mails, refuses: false };
  const server = net.createServer((socket) => {
    let [text, inMail] = ['', false];
    socket.on('error', () => {});
    socket.write('220 test\r\n');
    socket.on('data', (data) => {
      text += data;
      for (;;) {
        const end = text.indexOf(inMail ? '\r\n.\r\n' : '\r\n');
        if (end < 0) return;
        const part = text.slice(0, end);
        text = text.slice(end + (inMail ? 5 : 2));
        if (inMail) mails.push(part);
        const command = inMail ? '' : part.slice(0, 4).toUpperCase();
        if (command === 'DATA' && state.refuses) {
          socket.write('554 5.7.1 this text is not wanted here\r\n');
          continue;
        }
        inMail = command === 'DATA';
        socket.write(inMail ? '354 go on\r\n' : command === 'QUIT' ? '221 bye\r\n' : '250 ok\r\n');
      }
    });
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return Object.assign(state, { port: server.address().port, close: () => server.close() });
}

/** The HTML part of a mail, which is in quoted-printable. */
export function htmlOf(mail) {
  const [, part] = mail.match(/^Content-Type: text\/html[^]*?\r\n\r\n([^]*?)\r\n--/mi);
  const bytes = part.replace(/=\r\n/g, '').replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  return new TextDecoder().decode(Uint8Array.from(bytes, (character) => character.charCodeAt(0)));
}
