//! A yes or no is asked for on a companion path. [weida S17-10, AZ-6]

use std::time::Duration;

#[path = "../../examples/companion.rs"]
mod example;

#[tokio::test]
async fn s17_10_az_6_a_companion_path_says_what_a_subscription_does_not() {
    let heard = tokio::time::timeout(Duration::from_secs(20), example::run());
    let heard = heard.await.unwrap().unwrap();
    assert_eq!(heard, [("yes".to_owned(), 1), ("no".to_owned(), 0)]);
}
