//! The signals that end a service.

/// Resolves when the process is asked to end: SIGTERM or SIGINT (Ctrl-C); on Windows Ctrl-C, Ctrl-Break and the close of
/// the console. The library installs no handler before this is called; from then on these signals do not end the process
/// by themselves.
///
/// Call it in a tokio runtime with I/O enabled.
///
/// # Errors
/// The system's, if a handler cannot be installed.
///
/// # Cancel safety
/// Can be dropped and called again.
///
/// ```no_run
/// # async fn f(leader: leader_core::Elector) -> Result<(), Box<dyn std::error::Error>> {
/// leader_core::shutdown_signal().await?;
/// leader.shutdown(std::time::Duration::from_secs(20)).await?;
/// # Ok(())
/// # }
/// ```
#[cfg(unix)]
pub async fn shutdown_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Resolves when the process is asked to end: Ctrl-C, Ctrl-Break, or the close of the console.
///
/// # Errors
/// The system's, if a handler cannot be installed.
#[cfg(windows)]
pub async fn shutdown_signal() -> std::io::Result<()> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};
    let (mut c, mut br, mut close) = (ctrl_c()?, ctrl_break()?, ctrl_close()?);
    tokio::select! {
        _ = c.recv() => {}
        _ = br.recv() => {}
        _ = close.recv() => {}
    }
    Ok(())
}
