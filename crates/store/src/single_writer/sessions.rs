use super::{Reader, SingleWriterStore};
use crate::StoreFuture;
use crate::people::PeopleCommand;
use crate::sessions::{NewSession, SESSIONS_MAX, Session, SessionOwner, Sessions, SignInCode, SignedIn};

impl<R: Reader> Sessions for SingleWriterStore<R> {
    fn put_sign_in_code(&self, code: SignInCode) -> StoreFuture<'_, ()> {
        self.command(|reply| PeopleCommand::PutSignInCode { code, reply })
    }

    fn sign_in(&self, code: Vec<u8>, session: NewSession) -> StoreFuture<'_, Option<SignedIn>> {
        Box::pin(async move {
            // A wrong code costs one look at an index, and the writer nothing.
            match self.reader.has_sign_in_code(&code).await? {
                true => self.command(|reply| PeopleCommand::SignIn { code, session, reply }).await,
                false => Ok(None),
            }
        })
    }

    fn session_by_secret(&self, secret_hash: Vec<u8>) -> StoreFuture<'_, Option<Session>> {
        Box::pin(async move { self.reader.session_by_secret(&secret_hash).await })
    }

    fn sessions(&self, owner: SessionOwner) -> StoreFuture<'_, Vec<Session>> {
        Box::pin(async move {
            owner.user_id.as_deref().map_or(Ok(()), |user_id| self.writer.erasing.check(user_id))?;
            self.reader.sessions(&owner, self.writer.clock.now(), SESSIONS_MAX).await
        })
    }

    fn note_session_use(&self, id: String) -> StoreFuture<'_, ()> {
        self.command(|reply| PeopleCommand::NoteSessionUse { id, reply })
    }

    fn end_session(&self, owner: SessionOwner, id: String) -> StoreFuture<'_, bool> {
        self.command(|reply| PeopleCommand::EndSession { owner, id, reply })
    }
}
