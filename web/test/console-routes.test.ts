import { describe, expect, test } from 'vitest';
import { pathOf, routeOf, to } from '../src/console/routes.ts';

describe('an address', () => {
  test('names a page, and what it shows', () => {
    expect(routeOf('/')).toEqual(to('inbox'));
    expect(routeOf('/sign-in')).toEqual(to('inbox'));
    expect(routeOf('/live/')).toEqual(to('live'));
    expect(routeOf('/conversations/claude%3A1%2F2', '?user=bob')).toEqual(to('conversations', 'claude:1/2', 'bob'));
  });

  test('that names none is not found', () => {
    for (const path of ['/nothing', '/live/a/b', '/live/%E0%A4%A', '/constructor', '/__proto__']) expect(routeOf(path), path).toBeNull();
  });

  test('is made of a route, and back', () => {
    for (const route of [to('inbox'), to('conversations', 'a b/ü?#'), to('conversations', 'chat', 'a&b')]) {
      const url = new URL(pathOf(route), 'http://hub');
      expect(routeOf(url.pathname, url.search)).toEqual(route);
    }
  });
});
