use std::time::Duration;

use leader_core::{LockError, with_lock};

type Done = Result<(), LockError>;

#[with_lock]
fn without_key() -> Done {
    Ok(())
}
#[with_lock(ttl = "30s")]
fn without_key_but_a_ttl() -> Done {
    Ok(())
}
#[with_lock("billing")]
fn without_name() -> Done {
    Ok(())
}
#[with_lock(key = "")]
fn empty() -> Done {
    Ok(())
}
#[with_lock(key = "a\nb")]
fn control_character() -> Done {
    Ok(())
}
#[with_lock(key = "{id}\0")]
fn control_character_beside_braces(id: u32) -> Done {
    Ok(())
}
#[rustfmt::skip]
#[with_lock(key = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")]
fn too_long() -> Done {
    Ok(())
}
#[with_lock(key = 5)]
fn number() -> Done {
    Ok(())
}
#[with_lock(key = "account:{acount_id}")]
async fn misspelt_argument(account_id: u64) -> Done {
    Ok(())
}
#[with_lock(key = "account:{}")]
fn without_a_name(account_id: u64) -> Done {
    Ok(())
}
#[with_lock(key = "account:{account_id")]
fn without_an_end(account_id: u64) -> Done {
    Ok(())
}
#[with_lock(key = "account:{account.id}")]
fn an_expression(account: Account) -> Done {
    Ok(())
}
#[with_lock(key = account.id)]
fn expression_that_is_no_text(account: Account) -> Done {
    Ok(())
}
#[with_lock(key = "k", ttl = 30)]
fn ttl_without_unit() -> Done {
    Ok(())
}
#[with_lock(key = "k", ttl = "30")]
fn ttl_as_text_without_unit() -> Done {
    Ok(())
}
#[with_lock(key = "k", ttl = "99ms")]
fn ttl_too_short() -> Done {
    Ok(())
}
#[with_lock(key = "k", ttl = "2h")]
fn ttl_too_long() -> Done {
    Ok(())
}
#[with_lock(key = "k", wait = "soon")]
fn wait_that_is_no_time() -> Done {
    Ok(())
}
#[with_lock(key = "k", wait = account.id)]
fn wait_of_another_type(account: Account) -> Done {
    Ok(())
}
#[with_lock(key = "k", on_busy = "wait")]
fn unknown_choice() -> Done {
    Ok(())
}
#[with_lock(key = "k", on_loss = "cancel")]
fn cancel_of_a_function_that_is_not_async() -> Done {
    Ok(())
}
#[with_lock(key = "k", skipped = Ok(()))]
fn skipped_though_an_error_is_returned() -> Done {
    Ok(())
}
#[with_lock(key = "k", keep = "1h")]
fn option_of_another_attribute() -> Done {
    Ok(())
}
#[with_lock(key = "k", key = "k")]
fn twice() -> Done {
    Ok(())
}
#[with_lock(key = "k", ttl)]
fn no_value() -> Done {
    Ok(())
}
#[with_lock(key = "k", crate = nowhere)]
fn crate_that_is_not_there() -> Done {
    Ok(())
}

struct Account {
    id: u64,
}

trait Work {
    fn work(&self) -> Done;
}
impl Work for Account {
    #[with_lock(key = "")]
    fn work(&self) -> Done {
        Ok(())
    }
}

const PATIENCE: Duration = Duration::from_secs(1);

fn main() {
    // Each function is still there: one mistake is one message.
    let _ = (without_key(), empty(), Account { id: 1 }.work(), PATIENCE);
}
