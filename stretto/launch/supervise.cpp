#include "stretto/launch/supervise.h"

#include <algorithm>
#include <optional>
#include <set>

#include <poll.h>

#include "stretto/base/clock.h"
#include "stretto/base/log.h"
#include "stretto/base/process.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/socket.h"
#include "stretto/launch/diagnosis/diagnosis.h"
#include "stretto/launch/diagnosis/hang_watch.h"
#include "stretto/launch/hosts/job_watch.h"

namespace stretto::launch {
namespace {

using cluster::Clock;

class Supervisor {
 public:
  Supervisor(std::vector<Rank>& ranks, const SignalGuard& signals, const cluster::FlightBoard& board,
             Console& console, const SuperviseOptions& options, HostLink* link)
      : ranks_(ranks),
        signals_(signals),
        board_(board),
        console_(console),
        options_(options),
        link_(link),
        hang_watch_(board, options.hang_timeout),
        logs_held_(options.logs_held),
        endings_(ranks.size()),
        exit_codes_(ranks.size()),
        stopped_since_(ranks.size()),
        stop_(ranks, options.stop) {
    if (link_ != nullptr) job_.emplace(*link_, options.hang_timeout, options.own_program);
  }

  Outcome run() {
    take_signals();  // some may have arrived before any rank was started
    while (any_alive() || (link_ != nullptr && !link_->over())) {
      wait_and_carry_output();
      for (Rank& rank : ranks_) {
        if (const auto ending = rank.process.reap()) note_end(rank, *ending);
      }
      if (job_) follow_the_job();
      if (report_at_ && (Clock::now() >= *report_at_ || (!any_alive() && !job_))) report_failure();
      console_.show_due_messages();
      if (logs_held_ && board_.first_step_taken()) release_logs();
      for (const int left : stop_.next_stage()) note_left_behind(ranks_[static_cast<size_t>(left)]);
      if (!stop_.begun() && !report_at_ && Clock::now() >= hang_watch_.next_look()) watch_for_a_hang();
    }
    if (job_) follow_the_job();
    if (report_at_) report_failure();
    if (job_) conclude_the_job();
    if (outcome_.exit_code == 0 && !board_.has_nothing_to_do()) release_logs();
    outcome_.logs_held = logs_held_;
    outcome_.refused = is_refusal(outcome_.exit_code);
    return outcome_;
  }

 private:
  bool any_alive() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.process.alive(); });
  }

  // Whether the ranks have ended, of all hosts: a signal cannot change what became of the job any more.
  bool has_result() const {
    const auto has_ended = [](const Rank& rank) { return rank.process.has_ended(); };
    return !ranks_.empty() && std::ranges::all_of(ranks_, has_ended) && (link_ == nullptr || link_->over());
  }

  bool is_refusal(int exit_code) const {
    return exit_code == usage_error && options_.own_program && !board_.first_step_taken();
  }

  bool keeps_log(const Ending& ending) const {
    return !logs_held_ && !(options_.logs_are_new && is_refusal(ending.exit_code()));
  }

  void release_logs() {
    logs_held_ = false;
    for (Rank& rank : ranks_) rank.output.release_log();
  }

  void wait_and_carry_output() {
    auto until = stop_.deadline().value_or(hang_watch_.next_look());
    for (const auto& due : {report_at_, console_.next_due()}) until = std::min(until, due.value_or(until));
    if (job_) until = std::min(until, Clock::now() + std::chrono::milliseconds(250));
    std::vector<pollfd> watched = {{signals_.fd(), POLLIN, 0},
                                   {link_ == nullptr ? -1 : link_->fd(), POLLIN, 0}};
    for (const Rank& rank : ranks_) {
      for (const int stream : {0, 1}) {
        const bool later = !stop_.begun() && rank.output.must_wait(stream);
        watched.push_back({later ? -1 : rank.output.fd(stream), POLLIN, 0});
        if (later) until = std::min(until, Clock::now() + std::chrono::milliseconds(5));
      }
    }
    ::poll(watched.data(), watched.size(), cluster::poll_timeout(until));
    // Signals are handled before output: Ctrl-C also ends the program that reads this launcher's output, and
    // ranks that are saving must not get a closed pipe.
    if (!has_result()) take_signals();
    for (size_t i = 2; i < watched.size(); ++i) {
      if (watched[i].revents != 0) ranks_[(i - 2) / 2].output.read(static_cast<int>(i % 2));
    }
    if (stop_.begun()) return;
    for (Rank& rank : ranks_) rank.output.close_unread();
  }

  void take_signals() {
    while (const auto signal = signals_.next()) {
      if (*signal == SIGTSTP) pause_job();
      if (asks_to_end(*signal)) {
        if (link_ != nullptr) link_->post({.kind = HostEvent::Kind::stop, .code = *signal});
        ask_to_end(*signal, link_ == nullptr ? 0 : link_->node());
      }
      if (*signal == SIGUSR1) pass_on(*signal);
    }
  }

  // `node`: the host whose launcher got the signal. A cluster's manager signals the launchers of all hosts
  // within a short time, which counts as one request; a second Ctrl-C is a second request.
  void ask_to_end(int signal, int node) {
    const bool is_first_of_node = nodes_that_asked_.insert(node).second;
    const bool is_repeated = signal == SIGINT && Clock::now() - asked_at_ > same_request;
    if (stop_.begun() && outcome_.user_signal && is_first_of_node && !is_repeated) return;
    if (stop_.begun()) {
      if (outcome_.exit_code == 0) outcome_.exit_code = 128 + signal;
      outcome_.user_signal = signal;
      return stop_.kill();
    }
    outcome_.user_signal = signal;
    asked_at_ = Clock::now();
    const bool here = link_ == nullptr || node == link_->node();
    log::info(
        "{}{}: stopping; ranks have {} to finish their step and save; a second Ctrl-C kills them at once",
        here ? "" : link_->plan().hosts[static_cast<size_t>(node)].name + ": ", signal_text(signal),
        seconds_text(options_.stop.grace));
    stop_.within(options_.stop.grace);
  }

  // Stops the ranks, too: they have their own process groups, so that a terminal stops the launcher only.
  void pause_job() {
    if (link_ != nullptr) return link_->refuse_pause();
    const auto begin = Clock::now();
    stop_.send(SIGSTOP);
    signals_.stop_this_process();
    stop_.send(SIGCONT);
    const auto away = Clock::now() - begin;
    start_ += away;
    asked_at_ += away;
    stop_.postpone(away);
    log::info("the job was paused for {} and continues",
              human_duration(std::chrono::duration<double>(away).count()));
  }

  // Forwards the signal to processes that handle it; it would kill the others.
  void pass_on(int signal) const {
    for (const Rank& rank : ranks_) {
      if (!rank.process.alive()) continue;
      if (rank.process.handles(signal)) {
        ::kill(rank.process.pid(), signal);
      } else {
        log::warning("{} was not forwarded to rank {}: its program does not handle it", signal_text(signal),
                     rank.rank);
      }
    }
  }

  void note_end(Rank& rank, const Ending& ending) {
    rank.output.finish();
    endings_[index(rank)] = ending.text();
    if (ending.good()) return;
    // A program that could not be started has reported nothing itself.
    if (ending.start_error.empty()) exit_codes_[index(rank)] = ending.exit_code();
    const bool asked_for = stop_.explains(rank, ending);
    // A usage error is the cause of the other failures, regardless of the order in which they were detected.
    const bool explains = ending.code == usage_error && report_at_ && outcome_.exit_code != usage_error;
    if (outcome_.exit_code == 0 || explains) {
      outcome_.exit_code =
          asked_for && outcome_.user_signal ? 128 + *outcome_.user_signal : ending.exit_code();
    }
    if (asked_for) return;
    if (!outcome_.failure.empty() && !explains) return note_later_failure(rank, ending);
    report_ = describe_end(rank, name(rank), ending, LastLines::unseen, /*with_log=*/keeps_log(ending));
    report_at_ = Clock::now() + report_delay;
    lost_reader_ = options_.own_program && rank.rank == 0 && rank.output.lost_reader() && ending.signal == 0;
    note_failure(take_record(fmt::format("{} {}", name(rank), ending.text())));
    if (job_) announce_failure(rank, ending);
  }

  void note_left_behind(const Rank& rank) {
    endings_[index(rank)] = "did not end after SIGKILL";
    if (outcome_.exit_code == 0) outcome_.exit_code = 128 + outcome_.user_signal.value_or(SIGKILL);
  }

  // Logs a later failure, which is usually a consequence of the first.
  void note_later_failure(const Rank& rank, const Ending& ending) {
    const std::string text = fmt::format("{} {}, after the first failure", name(rank), ending.text());
    report_at_ ? later_failures_.push_back(text) : log::info("{}", text);
  }

  // Called a moment after the failure, so that the ranks' own messages come first, and a rank that is about
  // to exit with the cause (a usage error) is not killed before.
  void report_failure() {
    report_at_.reset();
    const bool others_live = any_alive();
    if (others_live) stop_.within(options_.stop.failure_grace);
    if (lost_reader_) return console_.show_messages_of([](int) { return false; });
    const bool usage = outcome_.exit_code == usage_error;
    if (usage) {
      console_.show_messages_of(
          [this](int rank) { return exit_codes_[static_cast<size_t>(rank - first_rank())] == usage_error; });
    } else {
      console_.show_messages();
    }
    const bool has_explained = std::ranges::find(exit_codes_, usage_error) != exit_codes_.end();
    if (usage && has_explained && options_.own_program) return;
    log::error("{}", report_);
    if (others_live) log::info("stopping the other ranks{}", job_ ? " of this host" : "");
    if (usage) return;
    for (const std::string& text : later_failures_) log::info("{}", text);
  }

  void watch_for_a_hang() {
    note_stopped();
    if (!hang_watch_.suspects()) return;
    if (job_) return job_->ask_for_records();
    FlightRecord record = take_record("");
    const auto hang = diagnose_hang(record, std::chrono::duration<double>(options_.hang_timeout).count(),
                                    options_.own_program);
    if (!hang) return note_long_work(record);
    record.reason = *hang;
    outcome_.exit_code = hang_exit_code;
    log::error("{}", *hang);
    log::info("stopping all ranks");
    note_failure(std::move(record));
    stop_.within(options_.stop.failure_grace);
  }

  // Logs long work of rank 0 from time to time, so that it does not look like a hang.
  void note_long_work(const FlightRecord& record) {
    const auto patience = options_.hang_timeout;
    if (Clock::now() < next_note_) return;
    const auto work = long_work(record, std::chrono::duration<double>(patience).count());
    if (!work) return;
    log::info("{}", *work);
    next_note_ = Clock::now() + patience;
  }

  // Records since when ranks have been stopped by a signal; on one host, only ranks that keep no record.
  void note_stopped() {
    for (const Rank& rank : ranks_) {
      if (!rank.process.alive() || (!job_ && board_.pid(rank.local_rank) != 0)) continue;
      auto& since = stopped_since_[index(rank)];
      if (process_state(rank.process.pid()) != "T") {
        since.reset();
      } else if (!since) {
        since = Clock::now();
      }
    }
  }

  void note_failure(FlightRecord record) {
    outcome_.failure = record.reason;
    outcome_.record = std::move(record);
  }

  // Announces a failure to the launchers on other hosts. A rank that exits may have lost a peer on another
  // host, whose failure must be announced first.
  void announce_failure(const Rank& rank, const Ending& ending) {
    own_failures_.push_back(outcome_.failure);
    const bool is_cause = ending.signal != 0 || ending.code == usage_error;
    const std::chrono::milliseconds delay(is_cause ? 0 : 700);
    const std::string text = describe_end(rank, name(rank), ending, LastLines::all, keeps_log(ending));
    job_->report(ending.exit_code(), text, *outcome_.record, delay);
    *report_at_ += delay;
  }

  void follow_the_job() {
    while (const auto event = job_->next()) {
      if (event->kind == HostEvent::Kind::look) {
        job_->send_record(event->code, take_record(""));
      } else if (event->kind != HostEvent::Kind::stop) {
        follow_failure(*event);
      } else if (event->node != link_->node()) {
        ask_to_end(event->code, event->node);
      }
    }
    if (any_alive() && !stop_.begun() && !report_at_) end_stopped_ranks();
    job_->send_due();
    if (!any_alive()) job_->stopped(outcome_.exit_code);
  }

  // Acts on the first failure of the job, or on one that explains it. Ranks of this host may have failed
  // because of it a moment before.
  void follow_failure(const HostEvent& event) {
    const auto is_own = [&](const std::string& own) { return event.text.starts_with(own); };
    if (event.node == link_->node() && std::ranges::any_of(own_failures_, is_own)) return;
    const FlightRecord record = take_record(event.text);
    std::vector<std::string> clauses = {event.text};
    if (event.code != usage_error && event.code != hang_exit_code) {
      for (const std::string& clause : waits(record)) clauses.push_back("on this host " + clause);
    }
    const bool reported = !own_failures_.empty() && !report_at_;
    if (!own_failures_.empty() && report_at_)
      later_failures_.push_back(own_failures_.back() + ", after the first failure");
    outcome_.exit_code = event.code;
    note_failure(record);
    if (own_failures_.empty()) link_->publish("record", to_json(record));
    report_ = fmt::format("{}", fmt::join(clauses, "\n  "));
    if (reported) return log::error("{}", report_);
    const bool is_sure = event.kind == HostEvent::Kind::lost || event.code == hang_exit_code;
    const auto soon = Clock::now() + (is_sure ? Clock::duration(0) : report_delay);
    report_at_ = std::min(report_at_.value_or(soon), soon);
  }

  // Ends ranks that are stopped by a signal, since they block the ranks of all hosts.
  void end_stopped_ranks() {
    if (Clock::now() < next_stop_check_) return;
    next_stop_check_ = Clock::now() + std::chrono::milliseconds(250);
    note_stopped();
    for (const Rank& rank : ranks_) {
      const auto since = stopped_since_[index(rank)];
      if (!rank.process.alive() || !since || Clock::now() - *since < link_->host_timeout()) continue;
      const FlightRecord record = take_record("");
      std::string text = fmt::format("{} has been stopped by a signal (state T) for {}", name(rank),
                                     seconds_text(link_->host_timeout()));
      for (const std::string& clause : waits(record)) text += "; " + clause;
      job_->report(hang_exit_code, text, record);
      stopped_since_[index(rank)] = Clock::now();  // reports it only once
    }
  }

  void conclude_the_job() {
    outcome_.exit_code = job_->exit_code();
    outcome_.host_lost = job_->host_lost();
    if (job_->failure()) outcome_.failure = job_->failure()->text.substr(0, job_->failure()->text.find('\n'));
    if (outcome_.record && link_->node() == 0) outcome_.record = job_->record_of_all(*outcome_.record);
  }

  size_t index(const Rank& rank) const { return static_cast<size_t>(rank.local_rank); }
  int first_rank() const { return ranks_.empty() ? 0 : ranks_.front().rank; }
  std::string name(const Rank& rank) const { return name_of(rank, /*with_host=*/job_.has_value()); }

  FlightRecord take_record(const std::string& reason) {
    FlightRecord record{.host = host_name(),
                        .time = utc_time(seconds_since_1970()),
                        .reason = reason,
                        .restart_count = options_.restart_count,
                        .max_restarts = options_.max_restarts};
    for (Rank& rank : ranks_) {
      RankRecord& kept = record.ranks.emplace_back(RankRecord{.rank = rank.rank, .pid = rank.process.pid()});
      if (job_) kept.host = record.host;
      kept.ending = endings_[index(rank)];
      if (rank.process.alive()) kept.state = process_state(rank.process.pid());
      if (rank.process.starting()) kept.program = rank.process.program().string();
      read_board(board_, rank.local_rank, kept);
      const auto stopped_since = stopped_since_[index(rank)];
      if (!kept.recorded) kept.progress_ago = seconds_since(stopped_since.value_or(start_));
    }
    return record;
  }

  std::vector<Rank>& ranks_;
  const SignalGuard& signals_;
  const cluster::FlightBoard& board_;
  Console& console_;
  SuperviseOptions options_;
  HostLink* link_;                   // null on one host
  std::optional<JobWatch> job_;      // set if there is a link
  std::set<int> nodes_that_asked_;   // nodes whose users have asked for the end of the job
  Clock::time_point asked_at_ = {};  // time of the first request
  static constexpr Clock::duration same_request = std::chrono::seconds(3);
  std::vector<std::string> own_failures_;  // of this host's ranks, as the texts of events begin
  Clock::time_point next_stop_check_ = Clock::time_point::min();
  static constexpr Clock::duration report_delay = std::chrono::milliseconds(500);
  HangWatch hang_watch_;
  bool logs_held_;
  Clock::time_point next_note_ = Clock::time_point::min();
  std::vector<std::string> endings_;  // how each rank ended; empty while it runs
  std::vector<int> exit_codes_;
  std::optional<Clock::time_point> report_at_;  // time to report the first failure
  std::string report_;
  bool lost_reader_ = false;  // rank 0 has failed, and reported, because nothing reads its output
  std::vector<std::string> later_failures_;
  Clock::time_point start_ = Clock::now();                       // excludes pauses
  std::vector<std::optional<Clock::time_point>> stopped_since_;  // for ranks that keep no record
  GroupStop stop_;
  Outcome outcome_;
};

}  // namespace

Outcome supervise(std::vector<Rank>& ranks, const SignalGuard& signals, const cluster::FlightBoard& board,
                  Console& console, const SuperviseOptions& options, HostLink* link) {
  return Supervisor(ranks, signals, board, console, options, link).run();
}

}  // namespace stretto::launch
