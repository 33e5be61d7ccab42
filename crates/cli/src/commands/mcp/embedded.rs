use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bellwire_server::App;
use bellwire_store::Store;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::super::serve::first_token;
use crate::client::{Client, Connection, reachable};
use crate::data_dir;
use crate::log::Log;

/// A hub inside this process. It listens on a free loopback port, so that the other commands can use it too.
pub(super) struct Embedded {
    runtime: Runtime,
    app: App,
    stop: oneshot::Sender<()>,
    dir: PathBuf,
    _log: Log,
}

impl Embedded {
    pub(super) fn start(connection: &Connection) -> Result<Self> {
        let mut config = connection.settings.load(Vec::new())?.config;
        let log = Log::start(&config.log, None)?;
        config.listen = ([127, 0, 0, 1], 0).into();
        let dir = config.data_dir.clone().context("there is no data folder; say --data-dir")?;
        data_dir::create(&dir)?;
        let runtime = Runtime::new().context("cannot start")?;
        let (stop, stopped) = oneshot::channel::<()>();
        let app = runtime.block_on(async {
            let listener = TcpListener::bind(config.listen).await.context("cannot listen on loopback")?;
            let stopped = async move { drop(stopped.await) };
            let keep_token = async |store: Arc<dyn Store>| Ok(first_token(&*store, &dir, &log).await.map(drop)?);
            let app = App::start_prepared(config, listener, stopped, keep_token).await;
            app.context("a hub may be running on this data already: leave --embedded away to use it")
        })?;
        data_dir::note_running(&dir, &reachable(app.address))?;
        Ok(Self { runtime, app, stop, dir, _log: log })
    }

    pub(super) fn client(&self) -> Result<Client> {
        let token = data_dir::admin_token(&self.dir)?;
        ensure!(token.is_some(), "{} has no admin.token", self.dir.display());
        Client::open(reachable(self.app.address), token)
    }

    #[cfg(test)]
    pub(super) fn store(&self) -> Arc<dyn Store> {
        self.app.store.clone()
    }

    /// Waits until an essential task of the hub has died.
    pub(super) fn failed(&self) -> impl Future<Output = ()> + Send + 'static {
        self.app.failed()
    }

    /// Stops the hub after the requests in flight.
    pub(super) fn stop(self) -> Result<()> {
        // Sending fails only if the hub has stopped already.
        let _ = self.stop.send(());
        let stopped = self.runtime.block_on(self.app.stopped());
        data_dir::note_stopped(&self.dir);
        stopped.context("the hub failed")
    }
}
