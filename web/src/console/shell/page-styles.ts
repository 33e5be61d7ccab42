import { conversationStyles } from '../conversations/styles.ts';
import { deliveriesStyles } from '../deliveries/styles.ts';
import { inboxPageStyles } from '../inbox/styles.ts';
import { liveStyles } from '../live/styles.ts';
import { overviewStyles } from '../overview/styles.ts';
import { playgroundStyles } from '../playground/styles.ts';
import { settingsStyles } from '../settings/styles.ts';
import { subscriberStyles } from '../subscribers/styles.ts';

/** All pages are in the console's shadow root, so it has the style sheets of all. */
export const pageStyles = [
  inboxPageStyles, conversationStyles, settingsStyles, liveStyles, deliveriesStyles, subscriberStyles, playgroundStyles, overviewStyles,
];
