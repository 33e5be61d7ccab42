import { css } from 'lit';

export const overviewStyles = css`
  .figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 10px; margin: 0 0 12px; max-width: 1240px; }
  .figures > div { padding: 10px 14px; }
  .figures dt { font-size: 12px; color: var(--muted); }
  .figures dd { margin: 0; font-size: 18px; font-weight: 650; letter-spacing: -0.01em; }
  .plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 12px; max-width: 1240px; }
  bellwire-plot { display: block; padding: 12px 16px; min-width: 0; }
  bellwire-plot h2 { margin: 0 0 6px; font-size: 14px; font-weight: 600; }
  bellwire-plot .uplot { font: inherit; }
  bellwire-plot .u-legend { display: flex; flex-wrap: wrap; gap: 2px 10px; font-size: 12px; text-align: start; }
  bellwire-plot .u-legend tr { display: inline-flex; align-items: center; }
  bellwire-plot .u-legend th { display: inline-flex; align-items: center; border: 0; padding: 2px 0; color: var(--text); }
  bellwire-plot .u-legend.u-inline.u-live th::after { content: none; }
  bellwire-plot .u-legend td { border: 0; padding: 2px 0 2px 4px; min-width: 30px; }
  bellwire-plot details { margin-top: 6px; }
  bellwire-plot summary { color: var(--muted); cursor: pointer; min-height: 24px; }
  bellwire-plot details .scroll-x { max-height: 260px; overflow: auto; }
  bellwire-plot details table { width: auto; }
  bellwire-plot details th, bellwire-plot details td { padding: 2px 10px; }
`;
