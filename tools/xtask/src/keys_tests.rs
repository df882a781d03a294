use super::*;

#[test]
fn the_value_of_a_port_is_read() {
    assert_eq!(port_value(&json!("portb[0x0064] = 0x1d\r\n")).expect("is a value"), 0x1d);
    assert!(port_value(&json!("unknown command: 'i'")).is_err());
}

fn names(text: &str) -> Vec<String> {
    let script = Script::parse(text).expect("is right");
    let name = |event: &Value| {
        let sign = if event["data"]["down"] == true { '+' } else { '-' };
        format!("{sign}{}", event["data"]["key"]["data"].as_str().expect("is a key"))
    };
    let events = script.0.iter().flat_map(|(_, step)| match step {
        Step::Events(events) => events.iter().map(name).collect(),
        _ => Vec::new(),
    });
    events.collect()
}

#[test]
fn capitals_and_signs_are_typed_with_shift() {
    assert_eq!(names("type a?\\n"), ["+a", "-a", "+shift", "+slash", "-slash", "-shift", "+ret", "-ret"]);
    assert_eq!(names("type B"), ["+shift", "+b", "-b", "-shift"]);
}

#[test]
fn keys_of_a_word_are_pressed_together() {
    assert_eq!(names("# now\n\nkeys ctrl-c up"), ["+ctrl", "+c", "-c", "-ctrl", "+up", "-up"]);
}

#[test]
fn a_flood_is_made_of_events_alone() {
    let script = Script::parse("flood 1000 keys shift").expect("is right");
    let Step::Flood(1000, moments) = &script.0[0].1 else { panic!("{script:?}") };
    assert_eq!((script.0.len(), moments.len()), (1, 2));
    assert!(Script::parse("flood 10 wait x").is_err() && Script::parse("flood x keys a").is_err());
}

#[test]
fn a_line_that_is_no_step_is_named() {
    let error = format!("{:#}", Script::parse("type x\nmove 1").expect_err("is wrong"));
    assert_eq!(error, "line 2: 'move 1': two numbers are expected");
}

#[test]
fn a_wait_sees_only_what_came_after_the_last_one() {
    let seen = Seen::default();
    seen.add(Stream::Command, b"ready ready");
    assert!(seen.wait_for(b"ready") && seen.wait_for(b"ready"));
    seen.end();
    assert!(!seen.wait_for(b"ready"));
}

#[test]
fn a_text_is_found_although_a_death_is_reported_in_its_midst() {
    let text = b"second terminal";
    for printed in [
        "$ second terminal\r\n",
        "srs: tty (2) is killed, at 0x43\r\necond terminal",
        "second ters: tty (2) is killed, at 0x43\nrminal",
        "rs: x\nsecond terminal",
    ] {
        let mut seen = Printed { console: printed.bytes().collect(), ..Printed::default() };
        assert!(seen.take(text), "{printed}");
    }
    for printed in ["sx: tty\r\necond terminal", "srs: tty (2) is", "second\r\n terminal", "second termina"] {
        let mut seen = Printed { console: printed.bytes().collect(), ..Printed::default() };
        assert!(!seen.take(text), "{printed}");
    }
}

#[test]
fn a_text_is_found_although_the_other_stream_is_heard_in_its_midst() {
    let seen = Seen::default();
    seen.add(Stream::Command, b"look b");
    seen.add(Stream::Console, b"console: up\n");
    seen.add(Stream::Command, b"ack\n");
    assert!(seen.wait_for(b"look back"));
    seen.end();
    assert!(seen.wait_for(b"console") && !seen.wait_for(b"look"));
}
