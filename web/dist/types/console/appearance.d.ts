import { Observable } from '../store/observable.ts';
export type Theme = 'system' | 'light' | 'dark';
export declare const theme: Observable<Theme>;
export declare function chooseTheme(choice: Theme): void;
/** Tells the document, whose colours are behind the console. Other tabs follow. */
export declare function applyTheme(): void;
export declare function followTheme(): void;
