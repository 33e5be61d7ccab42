//! The route table: each route with its scopes, wire types, errors and handler.

use std::sync::Arc;

use axum::extract::{FromRef, MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::middleware;
use axum::routing::{MethodFilter, on};
use axum::{Json, Router};

use super::api_service::Api;
use super::body::Body;
use super::catalog::{ChannelBody, EventTypeBody, ToolBody};
use super::channel_calls::{PairingCode, ProviderCall};
use super::channel_test::{ChannelTestBody, NewChannelTest};
use super::console::{Console, ConsoleAsset, ConsolePage};
use super::conversation_list::{ConversationPage, ListedConversationBody};
use super::conversations::{
    ConversationBody, MessageBody, MessagePage, NewMessage, PendingBody, PendingQuery, PutConversation,
};
use super::deliveries::{DeliveryBody, DeliveryPage};
use super::docs::DocsPage;
use super::elements::{Elements, ElementsModule};
use super::event_list::{EventPage, ListedEventBody};
use super::events::{EventsBody, PublishResponse, PublishedEvent};
use super::health::Health;
use super::html_page::HtmlPage;
use super::inbox::{InboxItemBody, InboxPage, ItemPatch, MarkedCount, PressBody, UnreadCount};
use super::ingest::{IngestResponse, IngestSourceBody, WebhookRequest};
use super::inject::{InjectBody, InjectResponse};
use super::ledger::{LedgerEntryBody, LedgerPage, LedgerSumsBody, SumsQuery};
use super::live::{LiveQuery, LiveStream};
use super::mcp::{McpAnswer, McpMessage, MessageTaken, SseMessage, SseStream};
use super::metrics::MetricsPage;
use super::openapi::{OpenApiDocument, Operation};
use super::own_test::OwnTestBody;
use super::path::OWNER;
use super::person_stream::PersonStream;
use super::pipeline::{self, RequestPipeline};
use super::query::Query;
use super::reminders::{NewReminderBody, ReminderBody, ReminderPage};
use super::sessions::{NewSignInCode, OpenedSession, SessionBody, SignIn, SignInCodeBody};
use super::settings::{Confirmation, SettingsBody, SettingsPatch};
use super::shape::{self, Accepted, Created, List, NoContent, ResponseShape, shaped};
use super::statistics::{StatisticsBody, StatisticsQuery};
use super::stream::HintStream;
use super::subscribers::{DryRun, DryRunResult, SubscriberBody, SubscriberQuery};
use super::system_prompt::{PromptQuery, SystemPrompt};
use super::tokens::{CreatedToken, NewToken, OwnToken, TokenView};
use super::tools::{ToolAnswer, ToolCall};
use super::trace::TraceBody;
use super::users::{UserBody, UserPage};
use super::{
    Hub, catalog, channel_calls, channel_test, console, conversations, deliveries, docs, elements, events, health,
    inbox, ingest, inject, ledger, live, mcp, metrics, not_found, openapi, own_test, person_stream, reminders,
    sessions, settings, statistics, stream, subscribers, tokens, tools, unsubscribe, users,
};
use crate::auth::Scope;
use crate::config::Config;
use crate::mcp::{DaemonEndpoints, Endpoint};

/// One row of the route table.
#[derive(Copy, Clone, Debug)]
pub struct Route {
    /// The HTTP method.
    pub method: &'static str,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// The scopes that may use it; empty means that no token is needed.
    pub scopes: &'static [Scope],
    /// The `summary` in the OpenAPI document.
    pub summary: &'static str,
    /// The `tag` in the OpenAPI document.
    pub tag: &'static str,
    /// The status of a successful response.
    pub status: StatusCode,
    /// Error statuses besides those that follow from the route's parameters and body.
    pub(super) errors: &'static [u16],
    pub(super) request: fn(&mut Operation<'_>),
    pub(super) answer: fn(&mut Operation<'_>),
    has_query: bool,
    handler: &'static str,
}

impl Route {
    /// The route that the request matched.
    pub(super) fn of(request: &Request) -> Option<&'static Self> {
        let path = request.extensions().get::<MatchedPath>()?;
        // Axum serves HEAD with the handler of GET.
        let method = if request.method() == Method::HEAD { "GET" } else { request.method().as_str() };
        ROUTES.iter().find(|route| route.path == path.as_str() && route.method == method)
    }

    /// The `operationId` in the OpenAPI document, such as `events_publish`.
    pub fn operation_id(&self) -> String {
        let mut parts: Vec<&str> = self.handler.split("::").map(str::trim).collect();
        parts.dedup();
        parts.join("_")
    }

    /// Whether it is a health or metrics endpoint, which accepts any host name and is exempt from the request limit.
    pub(super) fn is_probe(&self) -> bool {
        PROBES.contains(&self.path)
    }

    /// Whether the path contains the credential: a signed unsubscribe link.
    pub(super) fn is_signed_link(&self) -> bool {
        self.path == SIGNED_LINK
    }

    /// Whether it takes the calls of a source of webhooks, which authenticates them.
    pub(super) fn is_ingest(&self) -> bool {
        self.path == INGEST
    }

    /// Whether the query may have the conversation's owner. `PUT` has the owner in its body instead.
    pub(super) fn takes_owner(&self) -> bool {
        self.path.starts_with("/v1/conversations/") && self.method != "PUT"
    }

    /// Whether the query may have this parameter. For routes with a query type the handler checks the names.
    pub(super) fn takes_parameter(&self, name: &str) -> bool {
        self.has_query || (name == OWNER && self.takes_owner())
    }

    /// Whether a path of the table has this text where `GET /v1/events/{id}` has the id: the trace of an event with this id
    /// could not be read.
    pub(super) fn hides_event(id: &str) -> bool {
        let beside = ROUTES.iter().filter_map(|route| route.path.strip_prefix("/v1/events/"));
        beside.filter(|segment| !segment.starts_with('{')).any(|segment| segment == id)
    }

    /// Whether the route accepts `Idempotency-Key`. An injection is identified by its call id instead, and codes and sessions
    /// are shown only once.
    pub(super) fn takes_idempotency_key(&self) -> bool {
        self.method == "POST" && !self.is_ingest() && !self.path.ends_with("/inject") && !ONCE.contains(&self.path)
    }
}

/// Endpoints for monitoring, reachable under every host name.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Calls whose answers are not stored: codes and sessions are secrets, and each test is a new one.
const ONCE: [&str; 3] = ["/v1/sign_in_codes", "/v1/sessions", "/v1/users/{id}/{channel}/test"];

/// The path of webhooks.
const INGEST: &str = "/v1/ingest/{source}";

/// The path of unsubscribe links.
const SIGNED_LINK: &str = "/u/{signed}";

/// Defines [`ROUTES`] and the router. A row has the summary; the method, path and scopes; the request and response types
/// and further errors; the handler. A handler with other types does not compile.
macro_rules! routes {
    ($($tag:literal { $(
        #[doc = $summary:literal]
        $method:ident $path:literal [$($scope:ident)*]
            ($($request:ty)?) -> $reply:ty $(, or $($error:literal)+)? => $($handler:ident)::+;
    )+ })+) => {
        /// Every route with its scopes. A route that is not here does not exist.
        #[allow(unused_parens, reason = "with nothing between them they are the type of nothing")]
        pub const ROUTES: &[Route] = &[$($(Route {
            method: stringify!($method),
            path: $path,
            scopes: &[$(Scope::$scope),*],
            summary: $summary,
            tag: $tag,
            status: <$reply as ResponseShape>::STATUS,
            errors: &[$($($error),+)?],
            request: <($($request)?) as shape::RequestShape>::describe,
            answer: <$reply as ResponseShape>::describe,
            has_query: <($($request)?) as shape::RequestShape>::HAS_QUERY,
            handler: stringify!($($handler)::+),
        },)+)+];

        #[allow(unused_parens, reason = "with nothing between them they are the type of nothing")]
        fn table() -> Router<RouterState> {
            Router::new()$($(.route(
                $path,
                on(MethodFilter::$method, shaped::<_, ($($request)?), $reply, _>($($handler)::+)),
            ))+)+
        }
    };
}

routes! {
    "Events" {
        /// Publish one event, a list of events, or NDJSON: all events or none
        POST "/v1/events" [Admin Agent Ingest]
            (EventsBody) -> Accepted<PublishResponse>, or 404 409 422 => events::publish;
        /// List stored events, newest first, by person, conversation, type, time and verdict
        GET "/v1/events" [Admin Agent User]
            (Query<EventPage>) -> Json<List<ListedEventBody>>, or 404 409 => events::list;
        /// Stream events with their verdicts, and what becomes of their notifications, as server-sent events
        GET "/v1/events/stream" [Admin]
            (Query<LiveQuery>) -> LiveStream => live::stream;
        /// List the event types that Bellwire knows, with their payload fields; other types are allowed too
        GET "/v1/event_types" [Admin Agent User]
            () -> Json<List<EventTypeBody>> => catalog::event_types;
        /// The trace of an event: its verdicts, notifications and injections
        GET "/v1/events/{id}" [Admin Agent User]
            () -> Json<TraceBody>, or 409 => events::trace;
        /// Take a webhook of a configured source, which authenticates itself by the source's secret, and publish its events
        POST "/v1/ingest/{source}" []
            (WebhookRequest) -> Accepted<IngestResponse>, or 400 401 404 409 415 429 500 503 504 507 => ingest::receive;
        /// List the configured sources of webhooks, and what came from them since the hub started
        GET "/v1/ingest" [Admin]
            () -> Json<List<IngestSourceBody>> => ingest::list;
    }
    "Conversations" {
        /// List conversations, the most recently used first
        GET "/v1/conversations" [Admin Agent User]
            (Query<ConversationPage>) -> Json<List<ListedConversationBody>>, or 404 409 422 => conversations::list;
        /// Create a conversation, or change its title
        PUT "/v1/conversations/{id}" [Admin Agent User]
            (Body<PutConversation>) -> Json<ConversationBody>, or 409 => conversations::put;
        /// Get a conversation
        GET "/v1/conversations/{id}" [Admin Agent User]
            () -> Json<ConversationBody> => conversations::get;
        /// Take the agent's pending notifications at an injection point; the same call id gets the same answer
        POST "/v1/conversations/{id}/inject" [Admin Agent]
            (Body<InjectBody>) -> Json<InjectResponse>, or 409 => inject::inject;
        /// List the notifications that wait for an agent, in the order in which they would be taken
        GET "/v1/conversations/{id}/pending" [Admin Agent User]
            (Query<PendingQuery>) -> Json<List<PendingBody>> => conversations::pending;
        /// List the messages that the agent was shown, oldest or newest first
        GET "/v1/conversations/{id}/messages" [Admin Agent User]
            (Query<MessagePage>) -> Json<List<MessageBody>> => conversations::messages;
        /// Send a message to the agent as its person
        POST "/v1/conversations/{id}/messages" [Admin User]
            (Body<NewMessage>) -> Accepted<PublishedEvent>, or 409 422 429 => conversations::say;
        /// Get the paragraph for the agent's system prompt that explains notifications of a style
        GET "/v1/conversations/{id}/system_prompt" [Admin Agent]
            (Query<PromptQuery>) -> Json<SystemPrompt> => conversations::system_prompt;
        /// Create a new boundary, for a new session or after a compaction, and get the paragraph
        POST "/v1/conversations/{id}/system_prompt/rotate" [Admin Agent]
            (Query<PromptQuery>) -> Json<SystemPrompt>, or 409 => conversations::rotate;
        /// Stream hints about pending notifications as server-sent events: the current state, then changes
        GET "/v1/conversations/{id}/stream" [Admin Agent User]
            () -> HintStream => stream::stream;
    }
    "Agent tools" {
        /// List the tools with the schemas of their arguments
        GET "/v1/tools" [Admin Agent User]
            () -> Json<List<ToolBody>> => catalog::tools;
        /// Call an agent's tool; a refusal by the tool is a 200 response with `success: false`
        POST "/v1/tools/{id}" [Admin Agent]
            (Body<ToolCall>) -> Json<ToolAnswer> => tools::call;
        /// The same tools over MCP: send one JSON-RPC message; the response is JSON or a stream
        POST "/mcp" [Admin Agent]
            (McpMessage) -> McpAnswer, or 404 405 406 409 415 => mcp::send;
        /// Stream the server's messages to an MCP session as server-sent events
        GET "/mcp" [Admin Agent]
            () -> McpAnswer, or 404 405 406 => mcp::listen;
        /// End an MCP session
        DELETE "/mcp" [Admin Agent]
            () -> NoContent, or 404 405 => mcp::end;
        /// Open an MCP session of revision 2024-11-05: an event stream with the messages of the hub
        GET "/mcp/sse" [Admin Agent]
            () -> SseStream => mcp::open_sse;
        /// Send a message to such a session; the response comes on its event stream
        POST "/mcp/messages" [Admin Agent]
            (SseMessage) -> MessageTaken, or 404 => mcp::take_sse;
        /// Call the Switchboard's tool deliver over the Model Context Protocol, without sessions
        POST "/mcp/switchboard" [Admin Daemon]
            (McpMessage) -> McpAnswer, or 404 405 406 409 415 => mcp::send_switchboard;
        /// Call the Messenger's tool route.execute over the Model Context Protocol, without sessions
        POST "/mcp/messenger" [Daemon]
            (McpMessage) -> McpAnswer, or 404 405 406 409 415 => mcp::send_messenger;
    }
    "Subscribers" {
        /// List all subscribers, each with whether it is core and whether the caller's person has it enabled
        GET "/v1/subscribers" [Admin Agent User]
            (Query<SubscriberQuery>) -> Json<List<SubscriberBody>> => subscribers::list;
        /// Get a subscriber
        GET "/v1/subscribers/{id}" [Admin Agent User]
            (Query<SubscriberQuery>) -> Json<SubscriberBody> => subscribers::get;
        /// Dry run: render the notifications of some events; nothing is stored or delivered
        POST "/v1/subscribers/{id}/test" [Admin Agent User]
            (Body<DryRun>) -> Json<DryRunResult>, or 409 => subscribers::test;
    }
    "People" {
        /// List the people of whom the hub has something, by id
        GET "/v1/users" [Admin]
            (Query<UserPage>) -> Json<List<UserBody>> => users::list;
        /// List a person's notifications, newest first
        GET "/v1/users/{id}/notifications" [Admin User]
            (Query<InboxPage>) -> Json<List<InboxItemBody>> => inbox::list;
        /// Count a person's unread notifications
        GET "/v1/users/{id}/notifications/unread_count" [Admin User]
            () -> Json<UnreadCount> => inbox::unread_count;
        /// Mark all notifications as read
        POST "/v1/users/{id}/notifications/read_all" [Admin User]
            () -> Json<MarkedCount>, or 409 => inbox::read_all;
        /// Mark a notification as read or unread, or take a dismissal back
        PATCH "/v1/users/{id}/notifications/{nid}" [Admin User]
            (Body<ItemPatch>) -> Json<InboxItemBody>, or 409 => inbox::change;
        /// Dismiss a notification: it is hidden, counts as read and is kept
        DELETE "/v1/users/{id}/notifications/{nid}" [Admin User]
            () -> Json<InboxItemBody> => inbox::dismiss;
        /// Press a button: a prompt is sent to the agent once; pressing again gives the first result
        POST "/v1/users/{id}/notifications/{nid}/actions/{index}" [Admin User]
            () -> Json<PressBody>, or 409 429 => inbox::act;
        /// Stream the changes of a person's inbox as server-sent events
        GET "/v1/users/{id}/stream" [Admin User]
            () -> PersonStream => person_stream::stream;
        /// List pending reminders of the caller's person
        GET "/v1/reminders" [Admin User]
            (Query<ReminderPage>) -> Json<List<ReminderBody>>, or 404 => reminders::list;
        /// Set a reminder: a person for themselves, an admin for anyone; agents have the tool remind
        POST "/v1/reminders" [Admin User]
            (Body<NewReminderBody>) -> Created<ReminderBody>, or 404 409 => reminders::create;
        /// Cancel a reminder
        DELETE "/v1/reminders/{id}" [Admin User]
            () -> NoContent, or 409 => reminders::cancel;
        /// List deliveries to the caller's person, newest first; failed ones are the dead letters
        GET "/v1/deliveries" [Admin User]
            (Query<DeliveryPage>) -> Json<List<DeliveryBody>> => deliveries::list;
        /// Retry a delivery that ended without being sent
        POST "/v1/deliveries/{id}/retry" [Admin User]
            () -> Json<DeliveryBody>, or 409 => deliveries::retry;
        /// Cancel a waiting delivery
        POST "/v1/deliveries/{id}/cancel" [Admin User]
            () -> Json<DeliveryBody>, or 409 => deliveries::cancel;
        /// List what was decided on requests of the tool notify, newest first: an agent's own, a person's own, or all
        GET "/v1/ledger" [Admin Agent User]
            (Query<LedgerPage>) -> Json<List<LedgerEntryBody>>, or 404 409 => ledger::list;
        /// Sum these decisions per origin, and flag origins whose messages never get through
        GET "/v1/ledger/sums" [Admin Agent User]
            (Query<SumsQuery>) -> Json<List<LedgerSumsBody>>, or 404 409 => ledger::sums;
        /// List the channels to people, with whether the operator has configured them
        GET "/v1/channels" [Admin User]
            () -> Json<List<ChannelBody>> => catalog::channels;
        /// Get a person's settings
        GET "/v1/users/{id}/settings" [Admin User]
            () -> Json<SettingsBody> => settings::get;
        /// Change a person's settings with a merge patch
        PATCH "/v1/users/{id}/settings" [Admin User]
            (Body<SettingsPatch>) -> Json<SettingsBody>, or 429 => settings::patch;
        /// Confirm a person's address on a channel with the code that was sent to it
        POST "/v1/users/{id}/{channel}/confirm" [Admin User]
            (Body<Confirmation>) -> Json<SettingsBody>, or 409 => settings::confirm;
        /// Get a code that pairs a chat with a person; it works once and for ten minutes
        POST "/v1/users/{id}/{channel}/pair" [Admin User]
            () -> Created<PairingCode>, or 409 => channel_calls::pair;
        /// Send a test message to a person's own confirmed address on a channel
        POST "/v1/users/{id}/{channel}/test" [Admin User]
            () -> Json<OwnTestBody>, or 409 429 => own_test::send;
        /// Erase all data of a person; 404 if the hub has none
        DELETE "/v1/users/{id}" [Admin User]
            () -> NoContent => users::erase;
    }
    "Tokens" {
        /// Create a token; its secret is shown only in this response
        POST "/v1/tokens" [Admin]
            (Body<NewToken>) -> Created<CreatedToken>, or 409 => tokens::create;
        /// List all tokens, without secrets
        GET "/v1/tokens" [Admin]
            () -> Json<List<TokenView>> => tokens::list;
        /// Get the token of the request: its scope, and the person and conversation it is bound to
        GET "/v1/token" [Admin Agent User Ingest Daemon]
            () -> Json<OwnToken> => tokens::current;
        /// Revoke a token; its streams end
        DELETE "/v1/tokens/{id}" [Admin]
            () -> NoContent, or 409 => tokens::revoke;
    }
    "Sessions" {
        /// Create a code with which a person signs in on the hub's pages, for ten minutes and once
        POST "/v1/sign_in_codes" [Admin]
            (Body<NewSignInCode>) -> Created<SignInCodeBody>, or 409 => sessions::create_code;
        /// Sign in: exchange the code of a link for a session's token
        POST "/v1/sessions" []
            (Body<SignIn>) -> Created<OpenedSession>, or 401 409 429 500 504 507 => sessions::create;
        /// List the caller's own sessions, the newest first
        GET "/v1/sessions" [Admin User]
            () -> Json<List<SessionBody>> => sessions::list;
        /// End one of the caller's own sessions, with its streams
        DELETE "/v1/sessions/{id}" [Admin User]
            () -> NoContent => sessions::revoke;
    }
    "The hub itself" {
        /// Send one test message on a channel with the hub's settings, and report each step
        POST "/v1/{channel}/test" [Admin]
            (Body<NewChannelTest>) -> Json<ChannelTestBody>, or 409 429 => channel_test::send;
        /// What the hub did in the last minutes, for plots
        GET "/v1/statistics" [Admin]
            (Query<StatisticsQuery>) -> Json<StatisticsBody> => statistics::get;
        /// The page of the unsubscribe link in a message; it asks for confirmation and changes nothing
        GET "/u/{signed}" []
            () -> HtmlPage, or 404 => unsubscribe::ask;
        /// Stop messages to the address that the link was sent to
        POST "/u/{signed}" []
            () -> HtmlPage, or 404 500 503 507 => unsubscribe::act;
        /// Take an update from a channel's provider, which authenticates itself by the webhook's secret
        POST "/{channel}/webhook" []
            (ProviderCall) -> NoContent, or 401 404 500 503 507 => channel_calls::receive;
        /// Liveness: the process is alive
        GET "/healthz" []
            () -> Json<Health>, or 503 => health::live;
        /// Readiness: the hub can accept events; its writer answers and a commit succeeds
        GET "/readyz" []
            () -> Json<Health>, or 500 503 504 507 => health::ready;
        /// What the hub counts, for Prometheus
        GET "/metrics" []
            () -> MetricsPage, or 500 503 504 => metrics::serve;
        /// The console, for browsers. Its pages have paths of their own, which answer the same
        GET "/" []
            () -> ConsolePage => console::page;
        /// A file of the console; its name has a hash of its content
        GET "/assets/{file}" []
            () -> ConsoleAsset => console::asset;
        /// The toasts and the inbox for web pages, as one ES module
        GET "/elements.js" []
            () -> ElementsModule => elements::serve;
        /// This description, OpenAPI 3.1
        GET "/openapi.json" []
            () -> OpenApiDocument => openapi::serve;
        /// This description, to read
        GET "/docs" []
            () -> DocsPage => docs::serve;
    }
}

pub(crate) fn api(hub: Hub, config: &Config, endpoint: Endpoint) -> Api {
    let description = openapi::document(&hub.subscribers(), &hub.channels);
    let pipeline = Arc::new(RequestPipeline::new(hub.clone(), config));
    let docs = DocsPage::of(&description);
    let daemons = DaemonEndpoints::new(&hub, &config.limits);
    let state = RouterState(Arc::new(RouterStateParts {
        hub,
        endpoint,
        daemons,
        docs,
        elements: Elements::new(),
        console: Console::new(),
        document: OpenApiDocument(description.to_string().into()),
    }));
    let router = table()
        .method_not_allowed_fallback(not_found::unknown_method)
        .fallback(console::other_path)
        .layer(middleware::from_fn_with_state(pipeline, pipeline::handle))
        .with_state(state);
    Api::new(router, config)
}

/// The axum state of all handlers, each of which extracts its part. Every request clones it, so it is one `Arc`.
#[derive(Clone)]
struct RouterState(Arc<RouterStateParts>);

struct RouterStateParts {
    hub: Hub,
    endpoint: Endpoint,
    daemons: DaemonEndpoints,
    docs: DocsPage,
    elements: Elements,
    console: Console,
    document: OpenApiDocument,
}

macro_rules! impl_from_ref {
    ($($part:ident: $type:ty),+) => {
        $(impl FromRef<RouterState> for $type {
            fn from_ref(state: &RouterState) -> Self {
                state.0.$part.clone()
            }
        })+
    };
}

impl_from_ref!(
    hub: Hub,
    endpoint: Endpoint,
    daemons: DaemonEndpoints,
    docs: DocsPage,
    elements: Elements, console: Console,
    document: OpenApiDocument
);
