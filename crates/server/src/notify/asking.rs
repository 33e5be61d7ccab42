//! Asks a process elsewhere until the outcome is known.
//!
//! The Messenger recognises a request that it has seen, so asking again never sends again: it joins the attempt, or gets its
//! answer. That is also true of an attempt that failed and may be repeated, because a question says whether it is a repeated
//! one.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::attempt::{Attempted, Question};

/// The pauses before a request without an answer is asked about again.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// The pause before asking again about an attempt that goes on. The other side has waited for it already.
const IN_FLIGHT_PAUSE: Duration = Duration::from_millis(250);
/// How much longer than [`until_known`]'s time asking may take: the last call is made just before its end.
pub(crate) const LAST_CALL_MAX: Duration = Duration::from_secs(60);

/// Asks, and asks again while the outcome is not known, for at most `time_max`. Only a final answer, or the record that nothing
/// was delivered, replaces the first one: a process that cannot be reached any more does not prove that nothing was sent.
pub(super) async fn until_known<F: Future<Output = Attempted>>(
    time_max: Duration,
    ask: impl Fn(Question) -> F + Send,
) -> Attempted {
    let deadline = Instant::now() + time_max;
    let first = ask(Question::First).await;
    if !first.is_unknown() {
        return first;
    }
    let mut pauses = PAUSES.into_iter();
    let mut is_in_flight = first.meta.is_in_flight;
    loop {
        let pause = if is_in_flight { Some(IN_FLIGHT_PAUSE) } else { pauses.next() };
        let Some(pause) = pause.filter(|pause| Instant::now() + *pause < deadline) else { return first };
        tokio::time::sleep(pause).await;
        let again = ask(Question::Again).await;
        if again.is_final() || again.meta.is_released {
            return again;
        }
        is_in_flight = again.meta.is_in_flight;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use std::sync::Mutex;

    use bellwire_core::notify::{ErrorClass, NotifyError};

    use super::*;
    use crate::notify::envelope::{AnswerMeta, Delivered, unproven};

    const LONG: Duration = Duration::from_secs(600);

    fn delivered() -> Attempted {
        Ok(Delivered { channel: "pager".into(), delivery_id: "7".into() }).into()
    }

    fn in_flight() -> Attempted {
        let meta = AnswerMeta { is_in_flight: true, ..AnswerMeta::default() };
        Attempted { meta, ..Attempted::from(Err(unproven("it goes on"))) }
    }

    fn lost(why: &str) -> Attempted {
        Err(unproven(why)).into()
    }

    fn away() -> Attempted {
        Err(NotifyError::new(ErrorClass::TargetUnavailable, "away").into()).into()
    }

    fn released() -> Attempted {
        Attempted { meta: AnswerMeta { is_released: true, ..AnswerMeta::default() }, ..away() }
    }

    /// What the hub makes of these answers, and how many of them it asked for.
    async fn outcome(answers: Vec<Attempted>) -> (Attempted, usize) {
        let given = answers.len();
        let answers = Mutex::new(answers.into_iter());
        let known = until_known(LONG, |_| async { answers.lock().unwrap().next().unwrap() }).await;
        let left = answers.into_inner().unwrap().len();
        (known, given - left)
    }

    #[tokio::test(start_paused = true)]
    async fn a_known_outcome_is_asked_for_once() {
        let refused: Attempted = Err(NotifyError::invalid("no").into()).into();
        for known in [delivered(), refused, away()] {
            assert_eq!(outcome(vec![known.clone(), delivered()]).await, (known, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_goes_on_is_asked_about_until_it_ends() {
        let mut answers = vec![in_flight(); 20];
        answers.push(delivered());
        assert_eq!(outcome(answers).await, (delivered(), 21));
        let failed: Attempted = Err(NotifyError::invalid("no").into()).into();
        assert_eq!(outcome(vec![in_flight(), failed.clone()]).await, (failed, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn the_record_that_nothing_was_delivered_is_the_outcome() {
        assert_eq!(outcome(vec![in_flight(), released(), delivered()]).await, (released(), 2));
        assert_eq!(outcome(vec![lost("first"), away(), released(), delivered()]).await, (released(), 3));
    }

    #[tokio::test(start_paused = true)]
    async fn every_question_after_the_first_says_that_it_is_a_repeated_one() {
        let asked = Mutex::new(Vec::new());
        let ask = |question| {
            let mut asked = asked.lock().unwrap();
            asked.push(question);
            let answer = if asked.len() < 3 { in_flight() } else { delivered() };
            async { answer }
        };
        until_known(LONG, ask).await;
        assert_eq!(*asked.lock().unwrap(), [Question::First, Question::Again, Question::Again]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_answer_is_asked_for_a_few_times_and_then_the_first_one_stays() {
        assert_eq!(outcome(vec![lost("first"), away(), delivered()]).await, (delivered(), 3));
        assert_eq!(outcome(vec![lost("first"), lost("second"), away(), delivered()]).await, (lost("first"), 3));
    }

    #[tokio::test(start_paused = true)]
    async fn asking_ends_in_time_even_if_the_attempt_never_does() {
        let started = Instant::now();
        let slow = |_| async {
            tokio::time::sleep(Duration::from_secs(25)).await;
            in_flight()
        };
        assert_eq!(until_known(LONG, slow).await, in_flight());
        assert!(started.elapsed() < LONG + LAST_CALL_MAX, "{:?}", started.elapsed());
    }
}
