// The entry of the console, which the hub serves at its root.
import { ToastLayer } from '../elements/toast-layer.ts';
import { ToasterElement } from '../elements/toaster.ts';
import { followTheme } from './appearance.ts';
import { ConversationPanel } from './conversations/conversation.ts';
import { ConversationsPage } from './conversations/page.ts';
import { LedgerElement } from './deliveries/ledger.ts';
import { DeliveriesPage } from './deliveries/page.ts';
import { InboxPage } from './inbox/page.ts';
import { RowsElement } from './list/rows.ts';
import { LivePage } from './live/page.ts';
import { PlaygroundPage } from './playground/page.ts';
import { Sessions } from './session.ts';
import { SettingsPage } from './settings/page.ts';
import { QuietBand } from './settings/quiet-band.ts';
import { SessionsElement } from './settings/sessions.ts';
import { TelegramElement } from './settings/telegram.ts';
import { ConsoleElement } from './shell/app.ts';
import { shareVisibility } from './shell/desktop.ts';
import { TracePanel } from './live/trace-panel.ts';
import { PersonSwitchElement } from './shell/person-switch.ts';
import { SignInElement } from './shell/sign-in.ts';
import { SubscribersPage } from './subscribers/page.ts';
import { TryOut } from './subscribers/try-out.ts';

followTheme();
shareVisibility();
const sessions = new Sessions();
void sessions.start();

const elements: Record<string, CustomElementConstructor> = {
  'bellwire-toast-layer': ToastLayer,
  'bellwire-toaster': ToasterElement,
  'bellwire-rows': RowsElement,
  'bellwire-sign-in': SignInElement,
  'bellwire-person-switch': PersonSwitchElement,
  'bellwire-inbox-page': InboxPage,
  'bellwire-conversations-page': ConversationsPage,
  'bellwire-conversation': ConversationPanel,
  'bellwire-settings-page': SettingsPage,
  'bellwire-quiet-band': QuietBand,
  'bellwire-sessions': SessionsElement,
  'bellwire-telegram': TelegramElement,
  'bellwire-live-page': LivePage,
  'bellwire-trace': TracePanel,
  'bellwire-deliveries-page': DeliveriesPage,
  'bellwire-ledger': LedgerElement,
  'bellwire-subscribers-page': SubscribersPage,
  'bellwire-try-out': TryOut,
  'bellwire-playground-page': PlaygroundPage,
};
for (const [name, element] of Object.entries(elements)) customElements.define(name, element);

customElements.define('bellwire-console', ConsoleElement);
const app = document.createElement('bellwire-console') as ConsoleElement;
app.sessions = sessions;
document.body.append(app);
