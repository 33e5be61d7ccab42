import type { Subscriber } from '../wire.ts';
export declare function sentence(subscriber: Subscriber): string;
