//! How many items fit, which of the rest are folded into a line, and what stays for the next time.

use super::{Item, Limits};
use crate::InjectionPoint;
use crate::event::cut;
use crate::render::toon::Document;
use crate::render::{FoldLine, Page, Shown, Wrapper};

/// Counts the tokens of a text.
pub type CountTokens = fn(&str) -> usize;

/// A quarter of the bytes, rounded up: no model's own count, but close to all of them and the same for everyone.
pub fn estimate_tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// The most lines that sum up what was folded; the last of them is for all others.
const FOLD_LINES_MAX: usize = 5;
/// How much of a label is left where nothing else can give way.
const LABEL_LEAST: usize = 24;

/// What an answer shows.
pub(crate) struct Capped {
    pub(crate) text: String,
    pub(crate) page: Page,
    /// Positions of the items that were folded.
    pub(crate) folded: Vec<usize>,
}

/// The first `items_max` items in words, or fewer: as soon as there is surely no room for more, nobody need find any.
/// The tokens of the parts may add up to more than those of the whole, but never to twice as many.
pub(crate) fn worded(items: &[Item], limits: &Limits, mut word: impl FnMut(&Item) -> Shown) -> Vec<Shown> {
    let (mut rendered, mut tokens) = (Vec::new(), 0);
    for item in items.iter().take(limits.items_max) {
        let shown = word(item);
        tokens += (limits.count_tokens)(&shown.document.to_toon());
        rendered.push(shown);
        if tokens > 2 * limits.tokens_max {
            break;
        }
    }
    rendered
}

/// Chooses as many of the first items as fit, in strict order. `rendered` holds all that might.
pub(crate) fn cap(
    items: &[Item],
    rendered: Vec<Shown>,
    point: InjectionPoint,
    limits: &Limits,
    wrapper: &Wrapper<'_>,
) -> Capped {
    let room = Room { items, point, limits, wrapper };
    for count in (1..=rendered.len()).rev() {
        let page = room.page(&rendered[..count], FOLD_LINES_MAX);
        if room.fits(&page) {
            return room.capped(page);
        }
    }
    room.shortened(rendered)
}

struct Room<'a> {
    items: &'a [Item],
    point: InjectionPoint,
    limits: &'a Limits,
    wrapper: &'a Wrapper<'a>,
}

impl Room<'_> {
    /// What a reader would see with these items shown and the rest folded into at most so many lines.
    fn page(&self, shown: &[Shown], lines_max: usize) -> Page {
        let rest = &self.items[shown.len()..];
        let folded = rest.iter().filter(|item| self.folds(item)).count();
        Page {
            shown: shown.to_vec(),
            fold_lines: fold_lines(rest.iter().filter(|item| self.folds(item)), lines_max),
            count: self.items.len(),
            pending: rest.len() - folded,
        }
    }

    /// Only the start of a turn takes everything that waits, so only there what does not fit can be summed up.
    fn folds(&self, item: &Item) -> bool {
        self.point == InjectionPoint::TurnStart && item.may_fold()
    }

    fn fits(&self, page: &Page) -> bool {
        (self.limits.count_tokens)(&self.wrapper.write(page)) <= self.limits.tokens_max
    }

    /// The first item alone is too long: it is cut, and says by how much. Fold lines give way before the item vanishes,
    /// and in the end its label does.
    fn shortened(&self, mut rendered: Vec<Shown>) -> Capped {
        rendered.truncate(1);
        for lines_max in (0..=FOLD_LINES_MAX).rev() {
            let (page, fitted) = self.squeezed(&rendered, lines_max);
            if fitted {
                return self.capped(page);
            }
        }
        rendered.iter_mut().for_each(|shown| shown.label = cut(&shown.label, LABEL_LEAST));
        self.capped(self.squeezed(&rendered, 0).0)
    }

    /// The page with as much of its one item as fits beside so many fold lines; false if none of it does.
    fn squeezed(&self, rendered: &[Shown], lines_max: usize) -> (Page, bool) {
        let mut page = self.page(rendered, lines_max);
        if self.fits(&page) {
            return (page, true);
        }
        let fits = |document: &Document| {
            let mut page = page.clone();
            page.shown[0].document = document.clone();
            self.fits(&page)
        };
        let (document, fitted) = rendered[0].document.shortened(&fits);
        page.shown[0].document = document;
        (page, fitted)
    }

    fn capped(&self, page: Page) -> Capped {
        let showing = page.shown.len();
        let folded = (showing..self.items.len()).filter(|at| self.folds(&self.items[*at])).collect();
        let text = self.wrapper.write(&page);
        Capped { text, page, folded }
    }
}

/// One line per label in order of appearance; what does not get a line of its own shares the last. With no line to spare
/// everything shares one.
fn fold_lines<'a>(folded: impl Iterator<Item = &'a Item>, lines_max: usize) -> Vec<FoldLine> {
    let mut lines: Vec<FoldLine> = Vec::new();
    for item in folded {
        match lines.iter_mut().find(|line| line.label == item.label) {
            Some(line) => line.items += 1,
            None => lines.push(FoldLine { label: item.label.clone(), items: 1 }),
        }
    }
    if lines.len() > lines_max {
        let others = lines.drain(lines_max.saturating_sub(1)..).map(|line| line.items).sum();
        lines.push(FoldLine { label: "other".into(), items: others });
    }
    lines
}
