use leader_core::leader_only;

const NUMBER: u32 = 5;

#[leader_only("cleanup")]
fn without_name() {}
#[leader_only(group = "")]
fn empty() {}
#[leader_only(group = "a b")]
fn blank() {}
#[leader_only(group = "a:b")]
fn colon() {}
#[leader_only(group = "{x}")]
fn braces() {}
#[leader_only(group = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")]
fn too_long() {}
#[leader_only(group = 5)]
fn number() {}
#[leader_only(group = concat!("a", "b"))]
fn computed() {}
#[leader_only(group = NUMBER)]
fn constant_of_another_type() {}
#[leader_only(group = UNKNOWN)]
fn unknown_constant() {}
#[leader_only(gruop = "x")]
fn misspelt() {}
#[leader_only(group = "x", group = "y")]
fn twice() {}
#[leader_only(group)]
fn no_value() {}
#[leader_only(group =)]
fn no_value_after_the_sign() {}
#[leader_only(group = , skipped = 1)]
fn no_value_before_the_comma() {}
#[leader_only(group("x"))]
fn call() {}
#[leader_only(group = "x" skipped = 1)]
fn no_comma() {}
#[leader_only(= "x")]
fn no_option() {}
#[leader_only(on_loss = "stop")]
async fn unknown_choice() {}
#[leader_only(on_loss = cancel)]
async fn choice_without_quotes() {}
#[leader_only(on_loss = "cancel")]
fn cancel_of_a_function_that_is_not_async() {}
#[leader_only(crate = "leader_core")]
fn crate_as_text() {}
#[leader_only(crate = nowhere)]
fn crate_that_is_not_there() {}

struct Job;
impl Job {
    const GROUP: &'static str = "job";
    #[leader_only(group = Self::GROUP)]
    fn group_of_self(&self) {}
}

trait Work {
    fn work(&self);
}
impl Work for Job {
    #[leader_only(group = "a:b")]
    fn work(&self) {}
}

fn main() {
    // Each function is still there: one mistake is one message.
    without_name();
    misspelt();
    Job.group_of_self();
    Job.work();
}
