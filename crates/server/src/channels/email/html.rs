use std::collections::BTreeMap;
use std::sync::LazyLock;

use bellwire_core::person::one_line;
use minijinja::{AutoEscape, Environment, Value};

use super::mail_message::{Content, Link, MailItem, MailMessage};
use super::plain::{CONFIRM, CONFIRM_NOT, ITEMS_MAX, more, reason};

const NAME: &str = "mail_message";

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.add_template(NAME, include_str!("mail_message.html.j2")).expect("the template is part of the program");
    templates
});

/// The HTML part. The template engine escapes every value; the template marks none as safe.
pub(super) fn html(mail: &MailMessage, subject: &str) -> String {
    let links = mail.links();
    let link = |link: Option<Link>| link.map(|link| link.as_str().to_owned());
    let items: &[MailItem] = match &mail.content {
        Content::Notification { item, .. } => std::slice::from_ref(item),
        Content::Digest(items) => items,
        Content::Confirmation { .. } => &[],
    };
    let code = match &mail.content {
        Content::Confirmation { code } => Some(one_line(code)),
        _ => None,
    };
    let context = fields([
        ("subject", Value::from(subject)),
        ("count", Value::from(items.len())),
        ("items", items.iter().take(ITEMS_MAX).map(|item| card(item, mail)).collect()),
        ("more", Value::from(more(items.len()))),
        ("code", Value::from(code)),
        ("confirm", Value::from(CONFIRM)),
        ("confirm_not", Value::from(CONFIRM_NOT)),
        ("reason", Value::from(reason(mail))),
        ("inbox", Value::from(link(links.inbox))),
        ("unsubscribe", Value::from(link(links.unsubscribe))),
    ]);
    let template = TEMPLATES.get_template(NAME).expect("the template was added with this name");
    template.render(context).expect("the template uses only what it is given")
}

fn card(item: &MailItem, mail: &MailMessage) -> Value {
    fields([
        ("origin", Value::from(item.origin.as_str())),
        ("source", Value::from(item.source.clone())),
        ("kind", Value::from(item.kind.label())),
        ("class", Value::from(item.kind.label().to_ascii_lowercase())),
        ("title", Value::from(item.title.clone())),
        ("conversation", Value::from(item.conversation.clone())),
        ("at", Value::from(mail.shown(item.at))),
        ("lines", item.message.split('\n').map(Value::from).collect()),
    ])
}

fn fields<const N: usize>(pairs: [(&'static str, Value); N]) -> Value {
    Value::from(BTreeMap::from(pairs))
}
