use anyhow::{Context as _, Result};
use bellwire_server::auth::Scope;
use bellwire_server::{App, Config, create_token};
use tokio::net::TcpListener;

use crate::args::Serve;
use crate::data_dir;

pub(crate) fn run(arguments: Serve) -> Result<bool> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("BELLWIRE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    tokio::runtime::Runtime::new().context("cannot start")?.block_on(serve(arguments))
}

async fn serve(arguments: Serve) -> Result<bool> {
    let dir = data_dir::resolve(arguments.data_dir.as_deref())?;
    let listener = TcpListener::bind(arguments.listen)
        .await
        .with_context(|| format!("cannot listen on {} (say --listen 127.0.0.1:PORT)", arguments.listen))?;
    let config = Config {
        listen: arguments.listen,
        data_dir: Some(dir.clone()),
        allowed_hosts: arguments.allowed_hosts,
        ..Config::default()
    };
    let app = App::start(config, listener, stop_signal()).await?;
    if data_dir::admin_token(&dir)?.is_none() {
        let secret = create_token(&*app.store, Scope::Admin, "first start").await?;
        let path = data_dir::keep_admin_token(&dir, &secret)?;
        anstream::eprintln!("The admin token, shown once and kept in {}:\n\n    {secret}\n", path.display());
    }
    anstream::eprintln!("Bellwire listens on http://{} and keeps its data in {}", app.address, dir.display());
    app.stopped().await.context("the hub failed")?;
    anstream::eprintln!("Bellwire has stopped; everything it accepted is kept.");
    Ok(true)
}

/// Ctrl-C, or a polite kill.
async fn stop_signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminate) = signal(SignalKind::terminate()) else {
            drop(interrupt.await);
            return;
        };
        tokio::select! {
            _ = interrupt => {}
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    drop(interrupt.await);
}
