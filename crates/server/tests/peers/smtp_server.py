"""A real SMTP server that can be made to misbehave: smtp_server.py FOLDER LISTENERS

LISTENERS is a JSON list, one entry for each port to open on loopback:

    {"name": "x",               # what its mails are recorded under, in FOLDER/x.jsonl
     "tls": "starttls|implicit|none",
     "login": "user:password",  # AUTH is required; without it none is
     "mechanisms": ["LOGIN"],   # which AUTH is offered
     "faults": [{
        "at": "greeting|ehlo|starttls|auth|mail|rcpt|data|body|end|quit",
        "do": "hang|hold|drop|close|garbage|drip|long|endless|inject" or a reply such as "451 4.3.0 later",
        "times": 2,             # misbehaves this often and then no more; without it always
        "after": 1,             # behaves until it has taken this many mails
        "take": true}]}         # at the end: the mail is kept before the misbehaviour

When all listen, their ports are printed as one JSON object. What is heard goes to FOLDER/x.heard, a word a line, and
"answered" when a mail was taken and the answer is on its way. "hold" goes on as if nothing had been when FOLDER/x.go is
there. Ends when standard input does. FOLDER has cert.pem and key.pem.
"""
import asyncio
import base64
import email
import email.policy
import html.parser
import json
import pathlib
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

ALL_MECHANISMS = ["LOGIN", "PLAIN"]
TAKEN = "250 2.0.0 taken as 42"


class Peer(SMTP):
    """The server of aiosmtpd with a fault in one place."""

    def __init__(self, listener, folder, context):
        self.listener = listener
        self.heard = folder / f"{listener['name']}.heard"
        self.go = folder / f"{listener['name']}.go"
        login = listener.get("login")
        super().__init__(
            Handler(listener, folder),
            hostname="peer.example",
            tls_context=context if listener["tls"] == "starttls" else None,
            require_starttls=listener["tls"] == "starttls",
            auth_required=bool(login),
            auth_require_tls=listener["tls"] == "starttls",
            auth_exclude_mechanism=set(ALL_MECHANISMS) - set(listener.get("mechanisms", ALL_MECHANISMS if login else [])),
            authenticator=self.check,
        )

    def check(self, _server, _session, _envelope, _mechanism, data):
        user, _, password = self.listener.get("login", "").partition(":")
        right = (data.login.decode(), data.password.decode()) == (user, password)
        # Left to the server: it answers 535 itself, which "handled" would keep it from doing.
        return AuthResult(success=right, handled=False)

    def fault(self, place):
        """What goes wrong at this place now, if anything does."""
        taken = self.listener.get("taken", 0)
        due = (one for one in self.listener.get("faults", []) if one["at"] == place and taken >= one.get("after", 0))
        return next((one for one in due if one.get("times", 1) > 0), None)

    def note(self, word):
        with open(self.heard, "a") as file:
            file.write(word + "\n")

    async def push(self, status):
        await super().push(status)
        if status == TAKEN:
            self.note("answered")

    async def strikes(self, place):
        """Misbehaves if this is the place; says whether the command is answered by that."""
        self.note(place)
        fault = self.fault(place)
        if not fault:
            return False
        if "times" in fault:
            fault["times"] -= 1
        return await self.misbehave(fault["do"])

    async def misbehave(self, deed):
        write = self._writer.write
        if deed == "hang":
            await asyncio.Event().wait()
        elif deed == "hold":
            while not self.go.exists():
                await asyncio.sleep(0.01)
            return False
        elif deed == "drop":
            self.transport.abort()
            await asyncio.Event().wait()
        elif deed == "close":
            self.transport.close()
            await asyncio.Event().wait()
        elif deed == "garbage":
            write(b"\xff\xfe\x00 yes, thanks\r\n")
        elif deed == "drip":
            while not self.transport.is_closing():
                write(b"2")
                await asyncio.sleep(0.05)
        elif deed == "long":
            write(b"250-" + b"x" * 20000 + b"\r\n250 " + b"y" * 20000 + b"\r\n")
        elif deed == "endless":
            while not self.transport.is_closing():
                write(b"250-on and on and on\r\n" * 100)
                await self._writer.drain()
                await asyncio.sleep(0)
        elif deed == "inject":
            write(b"220 go ahead\r\n250 forged before the encryption\r\n")
        else:
            await self.push(deed)
        await self._writer.drain()
        return True

    async def _handle_client(self):
        if not await self.strikes("greeting"):
            await super()._handle_client()

    async def smtp_EHLO(self, hostname):
        if not await self.strikes("ehlo"):
            await super().smtp_EHLO(hostname)

    async def smtp_STARTTLS(self, arg):
        if not await self.strikes("starttls"):
            await super().smtp_STARTTLS(arg)

    async def smtp_AUTH(self, arg):
        if not await self.strikes("auth"):
            await super().smtp_AUTH(arg)

    async def smtp_MAIL(self, arg):
        if not await self.strikes("mail"):
            await super().smtp_MAIL(arg)

    async def smtp_RCPT(self, arg):
        if not await self.strikes("rcpt"):
            await super().smtp_RCPT(arg)

    async def smtp_DATA(self, arg):
        if self.fault("body"):
            await self.push("354 go on")
            await self._reader.readline()
            await self.strikes("body")
            while await self._reader.readline() not in (b".\r\n", b""):
                pass
        elif not await self.strikes("data"):
            await super().smtp_DATA(arg)

    async def smtp_QUIT(self, arg):
        if not await self.strikes("quit"):
            await super().smtp_QUIT(arg)


class Handler:
    """Records what arrives before it is answered for."""

    def __init__(self, listener, folder):
        self.listener = listener
        self.file = folder / f"{listener['name']}.jsonl"

    async def handle_DATA(self, server, session, envelope):
        fault = server.fault("end")
        early = fault and fault.get("take")
        if early:
            self.record(session, envelope)
        if await server.strikes("end"):
            # The fault has answered already; aiosmtpd wants something more to say, and the client has gone by then.
            return "250 again"
        if not early:
            self.record(session, envelope)
        return TAKEN

    def record(self, session, envelope):
        entry = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "encrypted": session.ssl is not None or self.listener["tls"] == "implicit",
            "authenticated": bool(session.authenticated),
            "hello": session.host_name,
            "raw": base64.b64encode(envelope.original_content).decode(),
            **parsed(envelope.original_content),
        }
        self.listener["taken"] = self.listener.get("taken", 0) + 1
        with open(self.file, "a") as file:
            file.write(json.dumps(entry) + "\n")


def parsed(raw):
    """What a reader of mail makes of it."""
    message = email.message_from_bytes(raw, policy=email.policy.default)
    defects = [str(defect) for part in message.walk() for defect in part.defects]
    defects += [f"{name}: {defect}" for name, value in message.items() for defect in value.defects]
    people = lambda name: [[one.display_name, one.addr_spec] for one in message[name].addresses]
    return {
        "headers": [[name, str(value)] for name, value in message.items()],
        "sender": people("From"),
        "recipients": people("To"),
        "date": message["Date"].datetime.isoformat(),
        "parts": [[part.get_content_type(), part.get_content().replace("\r\n", "\n")] for part in message.iter_parts()],
        "defects": defects,
        "page": Page.of(message),
    }


class Page(html.parser.HTMLParser):
    """What a browser would see: which elements, where they lead, and the words."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.links, self.text = [], [], []

    @classmethod
    def of(cls, message):
        page = cls()
        # A test email is plain text.
        body = message.get_body(("html",))
        page.feed(body.get_content() if body else "")
        page.close()
        return {"tags": page.tags, "links": page.links, "text": "".join(page.text)}

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("href", "src", "action", "background")]
        self.tags += [name for name, _ in attributes if name.startswith("on")]

    def handle_data(self, data):
        self.text.append(data)


async def main(folder, listeners):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    loop = asyncio.get_running_loop()
    ports, servers = {}, []
    for listener in listeners:
        encryption = context if listener["tls"] == "implicit" else None
        server = await loop.create_server(lambda it=listener: Peer(it, folder, context), "127.0.0.1", 0, ssl=encryption)
        ports[listener["name"]] = server.sockets[0].getsockname()[1]
        servers.append(server)
    print(json.dumps(ports), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    sys.exit(0)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    asyncio.run(main(pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])))
