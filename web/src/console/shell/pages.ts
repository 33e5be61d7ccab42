// The page of a route. Pages that few people open are loaded when they are.
import { type TemplateResult, html } from 'lit';
import { until } from 'lit/directives/until.js';
import type { Route } from '../routes.ts';
import type { Workspace } from '../workspace.ts';

const loading = html`<p class="empty" role="status">Loading…</p>`;

export function pageOf(workspace: Workspace, route: Route): TemplateResult {
  switch (route.page) {
    case 'inbox':
      return html`<bellwire-inbox-page .workspace=${workspace} .route=${route}></bellwire-inbox-page>`;
    case 'conversations':
      return html`<bellwire-conversations-page .workspace=${workspace} .route=${route}></bellwire-conversations-page>`;
    case 'settings':
      return html`<bellwire-settings-page class="scrolls" .workspace=${workspace} .route=${route}></bellwire-settings-page>`;
    case 'live':
      return html`<bellwire-live-page .workspace=${workspace} .route=${route}></bellwire-live-page>`;
    case 'deliveries':
      return html`<bellwire-deliveries-page .workspace=${workspace} .route=${route}></bellwire-deliveries-page>`;
    case 'subscribers':
      return html`<bellwire-subscribers-page .workspace=${workspace} .route=${route}></bellwire-subscribers-page>`;
    case 'playground':
      return html`<bellwire-playground-page class="scrolls" .workspace=${workspace} .route=${route}></bellwire-playground-page>`;
    case 'overview':
      return html`${until(overview(workspace, route), loading)}`;
  }
}

async function overview(workspace: Workspace, route: Route): Promise<TemplateResult> {
  await import('../overview/page.ts');
  return html`<bellwire-overview-page class="scrolls" .workspace=${workspace} .route=${route}></bellwire-overview-page>`;
}
