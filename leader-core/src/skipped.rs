//! What a gated function returns where its body does not run.

/// The value that a `#[leader_only]` function returns on a follower.
///
/// It has to say "nothing happened" by itself: `()`, `None`, or `Ok` of such a value. A count of `0` or an empty `Vec`
/// would look like the result of work, so numbers and collections have none; return an `Option` of them, or say what a
/// follower returns with `skipped = EXPR`.
///
/// ```
/// use leader_core::Skipped;
///
/// /// What a nightly clean-up did.
/// #[derive(Debug, PartialEq)]
/// enum Cleanup {
///     Removed(u64),
///     NotMyTurn,
/// }
///
/// impl Skipped for Cleanup {
///     fn skipped() -> Self {
///         Self::NotMyTurn
///     }
/// }
///
/// assert_eq!(<Result<Cleanup, String>>::skipped(), Ok(Cleanup::NotMyTurn));
/// ```
#[diagnostic::on_unimplemented(
    message = "`#[leader_only]` does not know what a follower returns as `{Self}`",
    label = "a follower has to return this without running the body",
    note = "return `()`, `Option<T>` or `Result<(), E>`, or say it: `#[leader_only(skipped = EXPR)]`",
    note = "for a type of your own, implement `leader_core::Skipped`"
)]
pub trait Skipped {
    /// The value that says that nothing was done.
    fn skipped() -> Self;
}

#[diagnostic::do_not_recommend]
impl Skipped for () {
    fn skipped() -> Self {}
}

#[diagnostic::do_not_recommend]
impl<T> Skipped for Option<T> {
    fn skipped() -> Self {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<T: Skipped, E> Skipped for Result<T, E> {
    fn skipped() -> Self {
        Ok(T::skipped())
    }
}
