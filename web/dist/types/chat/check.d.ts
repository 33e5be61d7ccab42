import { type Notification } from '../notification.ts';
/** Thrown with the first rule that is broken. */
export declare class Refused extends Error {
    readonly name = "Refused";
}
/** Reads the notification; throws [`Refused`] if a field breaks a limit. */
export declare function checkNotification(value: unknown): Notification;
