import type { Delivery } from '../wire.ts';
export type State = Delivery['state'];
export declare const LOOKS: Readonly<Record<State, string>>;
export declare function canRetry({ state }: Delivery): boolean;
export declare function canCancel({ state }: Delivery): boolean;
export declare function retryQuestion({ channel, target, state }: Delivery): string;
export declare function cancelQuestion({ channel, target }: Delivery): string;
