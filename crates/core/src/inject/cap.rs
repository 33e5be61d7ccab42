//! How many items fit, which of the others are folded into lines, and how many stay pending.

use super::{BlockItem, InjectLimits};
use crate::event::cut;
use crate::render::toon::Document;
use crate::render::{BlockContent, BlockWriter, FoldLine, RenderOutcome, RenderedItem, Rest};
use crate::{EventId, InjectionPoint};

/// Counts the tokens of a text. A part of a text must not count more tokens than the whole.
pub type CountTokens = fn(&str) -> usize;

/// A quarter of the bytes, rounded up: not any model's exact count, but close to all of them, and deterministic.
pub fn estimate_tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// The most fold lines; the last of them counts all remaining labels.
const FOLD_LINES_MAX: usize = 5;
/// In characters: how short a label may be cut when nothing else can be shortened.
const LABEL_LEAST: usize = 24;

/// The part of the items that fits into the limits.
pub(crate) struct CappedContent {
    pub(crate) text: String,
    pub(crate) page: BlockContent,
    /// Indexes of the folded items.
    pub(crate) folded: Vec<usize>,
}

/// Writes as many of the first items as fit, in strict order. Renders each item once, and stops rendering at the first
/// that does not fit.
pub(crate) fn fill(
    items: &[BlockItem],
    point: InjectionPoint,
    limits: &InjectLimits,
    wrapper: &BlockWriter<'_>,
    mut render: impl FnMut(&BlockItem) -> RenderOutcome,
) -> CappedContent {
    let room = PageFitter { items, point, limits, wrapper };
    let mut draft = wrapper.draft(items.len());
    let (mut shown, mut first, mut fitting) = (Vec::new(), None, 0);
    for item in items.iter().take(limits.items_max) {
        let rendered = render(item);
        draft.add(&rendered.shown);
        shown.push(rendered.shown);
        first.get_or_insert((rendered.document, rendered.whole));
        if !room.fits(draft.shortest()) {
            break;
        }
        fitting += 1;
    }
    for count in (1..=fitting).rev() {
        let rest = room.rest(count, FOLD_LINES_MAX);
        let text = draft.closed(count, &rest);
        if room.fits(&text) {
            shown.truncate(count);
            return room.capped(text, shown, rest);
        }
    }
    match (shown.into_iter().next(), first) {
        (Some(shown), Some((document, whole))) => room.shortened(shown, &document, whole),
        _ => room.capped(String::new(), Vec::new(), room.rest(0, FOLD_LINES_MAX)),
    }
}

struct PageFitter<'a> {
    items: &'a [BlockItem],
    point: InjectionPoint,
    limits: &'a InjectLimits,
    wrapper: &'a BlockWriter<'a>,
}

impl PageFitter<'_> {
    /// The items not shown if the page shows the first `showing` items: at most `lines_max` fold lines and the number
    /// pending.
    fn rest(&self, showing: usize, lines_max: usize) -> Rest {
        let rest = &self.items[showing..];
        let folded = rest.iter().filter(|item| self.folds(item));
        let pending = rest.len() - folded.clone().count();
        Rest { fold_lines: fold_lines(folded, lines_max), pending }
    }

    /// Only a turn start takes every pending notification, so only there can the remaining ones be folded.
    fn folds(&self, item: &BlockItem) -> bool {
        self.point == InjectionPoint::TurnStart && item.may_fold()
    }

    fn fits(&self, text: &str) -> bool {
        (self.limits.count_tokens)(text) <= self.limits.tokens_max
    }

    /// The first item alone is too long: cut its text. If that is not enough, drop fold lines, and finally cut its
    /// label.
    fn shortened(&self, mut shown: RenderedItem, document: &Document, whole: Option<EventId>) -> CappedContent {
        for lines_max in (0..=FOLD_LINES_MAX).rev() {
            let (capped, fitted) = self.squeezed(&shown, document, whole, lines_max);
            if fitted {
                return capped;
            }
        }
        shown.label = cut(&shown.label, LABEL_LEAST).into();
        self.squeezed(&shown, document, whole, 0).0
    }

    /// The page with as much of its single item as fits beside at most `lines_max` fold lines; false if no text fits.
    fn squeezed(
        &self,
        shown: &RenderedItem,
        document: &Document,
        whole: Option<EventId>,
        lines_max: usize,
    ) -> (CappedContent, bool) {
        let rest = self.rest(1, lines_max);
        let with = |text: String| RenderedItem { label: shown.label.clone(), times: shown.times, text };
        let write = |shown: &RenderedItem| {
            let mut draft = self.wrapper.draft(self.items.len());
            draft.add(shown);
            draft.closed(1, &rest)
        };
        let uncut = write(shown);
        if self.fits(&uncut) {
            return (self.capped(uncut, vec![shown.clone()], rest), true);
        }
        let fits = |document: &Document| self.fits(&write(&with(document.to_toon())));
        let (document, fitted) = document.shortened(whole, &fits);
        let shown = with(document.to_toon());
        (self.capped(write(&shown), vec![shown], rest), fitted)
    }

    fn capped(&self, text: String, shown: Vec<RenderedItem>, rest: Rest) -> CappedContent {
        let folded = (shown.len()..self.items.len()).filter(|at| self.folds(&self.items[*at])).collect();
        CappedContent { text, page: BlockContent { shown, rest }, folded }
    }
}

/// One line per label in order of appearance; labels beyond `lines_max` share the last line. With `lines_max` 0 all
/// share one.
fn fold_lines<'a>(folded: impl Iterator<Item = &'a BlockItem>, lines_max: usize) -> Vec<FoldLine> {
    let mut lines: Vec<FoldLine> = Vec::with_capacity(lines_max);
    let mut others = 0;
    for item in folded {
        match lines.iter().position(|line| line.label == item.label) {
            Some(at) => lines[at].items += 1,
            None if lines.len() < lines_max => lines.push(FoldLine { label: item.label.clone(), items: 1 }),
            None => others += 1,
        }
    }
    if others > 0 {
        others += lines.pop().map_or(0, |line| line.items);
        lines.push(FoldLine { label: "other".into(), items: others });
    }
    lines
}
