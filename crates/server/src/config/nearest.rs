/// The known word with the smallest edit distance, if that is at most a third of the word (at least 2).
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|one| (distance(word, one), one));
    let allowed = (word.chars().count() / 3).max(2);
    scored.filter(|(far, _)| *far <= allowed).min_by_key(|(far, _)| *far).map(|(_, one)| one)
}

/// The Levenshtein distance.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.chars().enumerate() {
        let mut line = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let changed = above[column] + usize::from(letter != *other);
            line.push(changed.min(above[column + 1] + 1).min(line[column] + 1));
        }
        above = line;
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_the_nearest_word() {
        let known = ["limits.publish_burst", "limits.streams", "server.listen"];
        assert_eq!(nearest("limits.publish_brust", known), Some("limits.publish_burst"));
        assert_eq!(nearest("server.listn", known), Some("server.listen"));
        assert_eq!(nearest("colour", known), None);
    }

    #[test]
    fn distance_counts_changes() {
        assert_eq!((distance("", "abc"), distance("abc", "abc"), distance("kitten", "sitting")), (3, 0, 3));
    }
}
