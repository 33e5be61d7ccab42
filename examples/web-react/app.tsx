import { BellwireInbox, BellwireToaster, useBellwire, useUnread } from 'bellwire-web/react';
import { type FormEvent, type ReactElement, StrictMode, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';

interface Session {
  readonly url: string;
  readonly user: string;
  readonly token: string;
}

function App(): ReactElement {
  const [session, setSession] = useState<Session | null>(null);
  const [said, setSaid] = useState<readonly string[]>([]);
  const bellwire = useBellwire(session && {
    ...session,
    onPrompt: (prompt, { delivered }) => { setSaid((before) => [...before, delivered ? `The agent reads: ${prompt}` : prompt]); },
  });
  const unread = useUnread(bellwire);
  useEffect(() => {
    document.title = unread === 0 ? 'My chat' : `(${String(unread)}) My chat`;
  }, [unread]);
  return <>
    <header><h1>My chat</h1>{session && <button onClick={() => { setSession(null); }}>Sign out</button>}<BellwireInbox /></header>
    <main>{session ? <ol>{said.map((text) => <li key={text}>{text}</li>)}</ol> : <SignIn done={setSession} />}</main>
    <BellwireToaster hotkey="F8" strings={TEXTS} />
  </>;
}

const TEXTS = { sent: 'Told the agent' };

function SignIn({ done }: { readonly done: (session: Session) => void }): ReactElement {
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const text = (name: string): string => String(fields.get(name));
    done({ url: text('url'), user: text('user'), token: text('token') });
  };
  return <form onSubmit={submit}>
    <label>Hub <input name="url" type="url" defaultValue="http://127.0.0.1:2355" required /></label>
    <label>You <input name="user" defaultValue="ada" required /></label>
    <label>Your token <input name="token" type="password" autoComplete="off" required /></label>
    <button>Connect</button>
  </form>;
}

const root = document.querySelector('#app');
if (root) createRoot(root).render(<StrictMode><App /></StrictMode>);
