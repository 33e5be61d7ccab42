//! Finds the known word that a mistyped word most likely stands for.

/// The known word with the smallest edit distance, if at most a third of its bytes (at least 2) differ. Of several, the
/// first.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = |one: &'a str| Some((distance(word.as_bytes(), one.as_bytes(), (one.len() / 3).max(2))?, one));
    known.into_iter().filter_map(close).min_by_key(|(distance, _)| *distance).map(|(_, one)| one)
}

/// The Levenshtein distance; `None` if it is more than `most`, which is noticed early.
fn distance(left: &[u8], right: &[u8], most: usize) -> Option<usize> {
    if left.len().abs_diff(right.len()) > most {
        return None;
    }
    let mut line: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut corner = std::mem::replace(&mut line[0], row + 1);
        for (column, other) in right.iter().enumerate() {
            let changed = corner + usize::from(letter != other);
            corner = line[column + 1];
            line[column + 1] = changed.min(corner + 1).min(line[column] + 1);
        }
        if line.iter().min() > Some(&most) {
            return None;
        }
    }
    Some(line[right.len()]).filter(|distance| *distance <= most)
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
        assert_eq!(nearest("typ", ["source", "type"]), Some("type"));
    }

    #[test]
    fn distance_counts_changes_up_to_its_bound() {
        let within = |left: &str, right: &str, most| distance(left.as_bytes(), right.as_bytes(), most);
        assert_eq!((within("", "abc", 3), within("abc", "abc", 0)), (Some(3), Some(0)));
        assert_eq!((within("kitten", "sitting", 3), within("kitten", "sitting", 2)), (Some(3), None));
    }
}
