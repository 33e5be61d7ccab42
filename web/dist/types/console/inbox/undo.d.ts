export interface Step {
    readonly action: 'dismiss' | 'read' | 'unread';
    readonly id: string;
    /** What the notification says, in short. */
    readonly text: string;
}
export declare class Steps {
    #private;
    get last(): Step | null;
    add(step: Step): void;
    /** Takes the last step off. */
    take(): Step | null;
}
export declare function describeStep({ action, text }: Step): string;
