//! Descriptions of tool arguments. Both the checks of a call and the tool's JSON schema are derived from them.

/// One argument of a tool.
#[derive(Copy, Clone, Debug)]
pub struct Argument {
    /// The key in the call's arguments.
    pub name: &'static str,
    /// The description that the model reads.
    pub meaning: &'static str,
    /// The type and range of the value.
    pub form: Form,
    /// Whether a call without it is refused.
    pub required: bool,
}

/// The type and range of an argument's value.
#[derive(Copy, Clone, Debug)]
pub enum Form {
    /// Text, with its length in characters.
    Text {
        /// The shortest length.
        min: usize,
        /// The longest length.
        max: usize,
    },
    /// One of a set of strings.
    Word {
        /// The allowed strings.
        words: &'static [&'static str],
        /// The value used if the argument is omitted.
        default: Option<&'static str>,
    },
    /// An integer.
    Integer {
        /// The smallest value.
        min: i64,
        /// The largest value.
        max: i64,
        /// The value used if the argument is omitted.
        default: Option<i64>,
    },
    /// A timestamp in RFC 3339.
    Moment,
    /// A list of objects.
    List {
        /// The most objects.
        max: usize,
        /// The arguments of each object.
        of: &'static [Argument],
    },
    /// An object.
    Object {
        /// Its fields.
        of: &'static [Argument],
    },
}

impl Argument {
    pub(crate) const fn text(name: &'static str, min: usize, max: usize, meaning: &'static str) -> Self {
        Self { name, meaning, form: Form::Text { min, max }, required: false }
    }

    pub(crate) const fn word(name: &'static str, words: &'static [&'static str], meaning: &'static str) -> Self {
        Self { name, meaning, form: Form::Word { words, default: None }, required: false }
    }

    pub(crate) const fn integer(name: &'static str, min: i64, max: i64, meaning: &'static str) -> Self {
        Self { name, meaning, form: Form::Integer { min, max, default: None }, required: false }
    }

    pub(crate) const fn moment(name: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning, form: Form::Moment, required: false }
    }

    pub(crate) const fn list(name: &'static str, max: usize, of: &'static [Self], meaning: &'static str) -> Self {
        Self { name, meaning, form: Form::List { max, of }, required: false }
    }

    pub(crate) const fn object(name: &'static str, of: &'static [Self], meaning: &'static str) -> Self {
        Self { name, meaning, form: Form::Object { of }, required: false }
    }

    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    pub(crate) const fn or_word(mut self, default: &'static str) -> Self {
        if let Form::Word { words, .. } = self.form {
            self.form = Form::Word { words, default: Some(default) };
        }
        self
    }

    pub(crate) const fn or_number(mut self, number: i64) -> Self {
        if let Form::Integer { min, max, .. } = self.form {
            self.form = Form::Integer { min, max, default: Some(number) };
        }
        self
    }
}

/// The names in an enum's table, in order.
pub(crate) const fn words_of<T: Copy, const N: usize>(table: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut at = 0;
    while at < N {
        words[at] = table[at].0;
        at += 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{CheckNotifications, NotifySelf, Remind, SendNotification, ShowNotification, ToolArguments};
    use super::*;
    use crate::Time;

    /// Valid values at the limits of an argument, and invalid values just beyond them.
    fn edges(form: Form) -> (Vec<Value>, Vec<Value>) {
        match form {
            Form::Text { max, .. } => (vec![json!("x"), json!("x".repeat(max))], vec![json!("x".repeat(max + 1))]),
            Form::Word { words, .. } => (words.iter().map(|word| json!(word)).collect(), vec![json!("nonsense")]),
            Form::Integer { min, max, .. } => (vec![json!(min), json!(max)], vec![json!(min - 1), json!(max + 1)]),
            Form::Moment => (vec![json!("2026-01-03T16:00:00Z")], vec![json!("soon")]),
            Form::List { max, of } => {
                let item = |change: Option<(&str, Value)>| {
                    let mut item = json!({"label": "OK", "action": "prompt", "prompt": "go on"});
                    change.into_iter().for_each(|(name, value)| item[name] = value);
                    item
                };
                let (mut right, mut wrong) =
                    (vec![json!(vec![item(None); max])], vec![json!(vec![item(None); max + 1])]);
                for argument in of {
                    let (allowed, refused) = edges(argument.form);
                    right.extend(allowed.into_iter().map(|value| json!([item(Some((argument.name, value)))])));
                    wrong.extend(refused.into_iter().map(|value| json!([item(Some((argument.name, value)))])));
                }
                (right, wrong)
            }
            // Only `notify` takes one, whose arguments depend on each other: it has tests of its own.
            Form::Object { .. } => (Vec::new(), vec![json!(5)]),
        }
    }

    /// Asserts that `takes` accepts exactly the calls that the description of the arguments allows.
    fn agrees(arguments: &[Argument], least: &Value, takes: impl Fn(&Value) -> bool) {
        assert!(takes(least), "{least}");
        let with = |name: &str, value: Value| {
            let mut call = least.clone();
            call[name] = value;
            call
        };
        assert!(!takes(&with("unknown", json!(1))));
        for argument in arguments {
            let (right, wrong) = edges(argument.form);
            right.into_iter().for_each(|value| assert!(takes(&with(argument.name, value.clone())), "{value}"));
            wrong.into_iter().for_each(|value| assert!(!takes(&with(argument.name, value.clone())), "{value}"));
            let absent = takes(&with(argument.name, Value::Null));
            assert!(absent != argument.required, "{} is left out", argument.name);
        }
    }

    #[test]
    fn every_tool_takes_exactly_what_its_arguments_say() {
        let now: Time = "2026-01-03T15:30:00Z".parse().unwrap_or(Time::ZERO);
        let read = |call: &Value| ToolArguments::parse(call.clone()).unwrap_or_default();
        agrees(CheckNotifications::ARGUMENTS, &json!({}), |call| CheckNotifications::parse(&read(call)).is_ok());
        agrees(NotifySelf::ARGUMENTS, &json!({"message": "x"}), |call| NotifySelf::parse(&read(call)).is_ok());
        agrees(SendNotification::ARGUMENTS, &json!({"message": "x"}), |call| {
            SendNotification::parse(&read(call)).is_ok()
        });
        let least = json!({"message": "x", "severity": "info"});
        agrees(ShowNotification::ARGUMENTS, &least, |call| ShowNotification::parse(&read(call)).is_ok());
        agrees(Remind::ARGUMENTS, &json!({"message": "x"}), |call| {
            // Exactly one of the two times is required.
            let mut call = call.clone();
            if call["at"].is_null() && call["in_minutes"].is_null() {
                call["in_minutes"] = json!(1);
            }
            Remind::parse(&read(&call), now).is_ok()
        });
    }
}
