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
