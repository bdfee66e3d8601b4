// SPDX-License-Identifier: Apache-2.0
//
// A dumbbell in ns-3, the outside yardstick for the simulator in crates/sim.
//
//   sender i --access--\                              /--access-- receiver i
//                       router ==== bottleneck ==== router
//
// Bulk TCP flows share one drop-tail link. The program prints one JSON object: what each flow
// delivered, how long packets waited in the bottleneck queue, what was dropped, and what the run cost.
//
// Choices that make the numbers comparable with a plain link model:
//   * Segments carry 1448 bytes; with 20 + 20 bytes of headers and the timestamp option this is a
//     1500-byte IP packet. The PPP framing of ns-3 adds 2 bytes, so the link rate is scaled by 1502/1500.
//   * The return path is only delay: its rate is high and its queue never fills.
//   * The bottleneck's only queue is the device's (no queue discipline, no back-pressure to the stack,
//     which would hide drops). A packet in transmission has left it.
//   * A flow that ends is cut off by taking its sender's interface down: closing the socket would first
//     drain its 64 MB send buffer.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include "queue_monitor.h"
#include "reno_friendly_cubic.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t PAYLOAD = 1448; // bytes per segment
constexpr uint32_t PACKET = 1500;  // bytes per IP packet
constexpr uint32_t FRAME = 1502;   // bytes on the ns-3 link, with the PPP header

struct Options
{
    double rate{100};         // bottleneck, Mbit/s of IP packets
    double rttMs{30};         // base round trip, ms
    uint32_t bufferPackets{250};
    uint32_t flows{1};
    double staggerS{0};       // time between the starts of two flows
    double durationS{0};      // how long each flow lasts; 0: to the end
    double seconds{200};      // simulated time
    double warmupS{20};       // left out of the "steady" figures
    std::string cc{"cubic"};
    bool hystart{false};
    uint32_t delack{1};
    std::string recovery{"prr"};
    bool direct{false};       // no access links: hosts sit at both ends of the bottleneck
};

struct Flow
{
    double startS;
    double stopS;
    Ptr<PacketSink> sink;
    uint64_t bytesAtWarmup{0};
    uint64_t bytesAtStop{0};
    uint32_t recoveries{0}; // fast recoveries entered: congestion events
    uint32_t timeouts{0};
};

void
CountEvent(Flow* flow, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
{
    flow->recoveries += now == TcpSocketState::CA_RECOVERY;
    flow->timeouts += now == TcpSocketState::CA_LOSS;
}

void
Require(bool condition, const std::string& message)
{
    if (!condition)
    {
        std::fprintf(stderr, "dumbbell: %s\n", message.c_str());
        std::exit(2);
    }
}

Options
Parse(int argc, char* argv[])
{
    Options o;
    CommandLine cmd(__FILE__);
    cmd.AddValue("rate", "bottleneck rate, Mbit/s", o.rate);
    cmd.AddValue("rtt-ms", "base round-trip time, ms", o.rttMs);
    cmd.AddValue("buffer-packets", "bottleneck queue limit, packets", o.bufferPackets);
    cmd.AddValue("flows", "number of flows", o.flows);
    cmd.AddValue("stagger-s", "time between flow starts, s", o.staggerS);
    cmd.AddValue("duration-s", "life time of a flow, s (0: to the end)", o.durationS);
    cmd.AddValue("seconds", "simulated time, s", o.seconds);
    cmd.AddValue("warmup-s", "time left out of the steady figures, s", o.warmupS);
    cmd.AddValue("cc", "newreno, linuxreno, cubic or cubic-friendly", o.cc);
    cmd.AddValue("hystart", "HyStart in CUBIC", o.hystart);
    cmd.AddValue("delack", "packets per acknowledgement", o.delack);
    cmd.AddValue("recovery", "window reduction in recovery: prr or classic", o.recovery);
    cmd.AddValue("direct", "no access links (flows must last to the end)", o.direct);
    cmd.Parse(argc, argv);
    Require(o.rate > 0 && o.rttMs > 0 && o.flows > 0 && o.bufferPackets > 0,
            "rate, rtt-ms, flows and buffer-packets must be positive");
    Require(o.seconds > o.warmupS && o.warmupS >= 0, "seconds must be larger than warmup-s");
    Require(!o.direct || o.durationS == 0, "direct needs flows that last to the end (duration-s 0)");
    Require(o.recovery == "prr" || o.recovery == "classic", "recovery is prr or classic, not " + o.recovery);
    return o;
}

TypeId
Controller(const std::string& name)
{
    if (name == "newreno")
    {
        return TcpNewReno::GetTypeId();
    }
    if (name == "linuxreno")
    {
        return TcpLinuxReno::GetTypeId();
    }
    if (name == "cubic")
    {
        return TcpCubic::GetTypeId();
    }
    Require(name == "cubic-friendly", "cc is newreno, linuxreno, cubic or cubic-friendly, not " + name);
    return RenoFriendlyCubic::GetTypeId();
}

void
SetDefaults(const Options& o)
{
    constexpr uint32_t socketBuffer = 64 << 20;
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(socketBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(socketBuffer));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(PAYLOAD));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(o.delack));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(Controller(o.cc)));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(o.recovery == "prr" ? TcpPrrRecovery::GetTypeId()
                                                       : TcpClassicRecovery::GetTypeId()));
    // ns-3 takes the whole minimum RTT as the delay threshold, clamped to [DelayMin, DelayMax]; Linux and
    // RFC 9406 take an eighth of it, clamped to [4 ms, 16 ms]. Setting both ends gives the latter.
    const double threshold = std::clamp(o.rttMs / 8, 4.0, 16.0);
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(o.hystart));
    Config::SetDefault("ns3::TcpCubic::HyStartDelayMin", TimeValue(MicroSeconds(1000 * threshold)));
    Config::SetDefault("ns3::TcpCubic::HyStartDelayMax", TimeValue(MicroSeconds(1000 * threshold)));
}

/// A link whose forward direction is the bottleneck and whose return direction only delays.
NetDeviceContainer
BottleneckLink(const Options& o, Ptr<Node> from, Ptr<Node> to)
{
    PointToPointHelper link;
    link.DisableFlowControl();
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate("10Gbps")));
    link.SetDeviceAttribute("Mtu", UintegerValue(PACKET));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(1000 * o.rttMs / 2)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
    NetDeviceContainer ends = link.Install(from, to);
    const auto forward = DynamicCast<PointToPointNetDevice>(ends.Get(0));
    forward->SetDataRate(DataRate(static_cast<uint64_t>(o.rate * 1e6 * FRAME / PACKET)));
    forward->GetQueue()->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, o.bufferPackets));
    return ends;
}

double
CpuSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + 1e-6 * usage.ru_utime.tv_usec;
}

void
TakeDown(Ptr<Node> node)
{
    node->GetObject<Ipv4>()->SetDown(1);
}

} // namespace

int
main(int argc, char* argv[])
{
    const Options o = Parse(argc, argv);
    SetDefaults(o);

    const uint32_t hosts = o.direct ? 1 : o.flows;
    NodeContainer senders(hosts);
    NodeContainer receivers(hosts);
    NodeContainer routers(o.direct ? 0 : 2);
    InternetStackHelper stack;
    stack.InstallAll();

    Ipv4AddressHelper address("10.0.0.0", "255.255.255.252");
    const auto connect = [&](const NetDeviceContainer& ends) {
        const Ipv4InterfaceContainer interfaces = address.Assign(ends);
        // Without flow control in the devices Assign() adds no queue discipline; make sure of it.
        const auto control = ends.Get(0)->GetNode()->GetObject<TrafficControlLayer>();
        NS_ABORT_IF(control->GetRootQueueDiscOnDevice(ends.Get(0)));
        address.NewNetwork();
        return interfaces;
    };

    std::vector<Ipv4Address> destinations;
    NetDeviceContainer bottleneck;
    if (o.direct)
    {
        bottleneck = BottleneckLink(o, senders.Get(0), receivers.Get(0));
        destinations.assign(o.flows, connect(bottleneck).GetAddress(1));
    }
    else
    {
        PointToPointHelper access;
        access.DisableFlowControl();
        access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
        access.SetChannelAttribute("Delay", StringValue("0s"));
        access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
        bottleneck = BottleneckLink(o, routers.Get(0), routers.Get(1));
        connect(bottleneck);
        for (uint32_t i = 0; i < o.flows; ++i)
        {
            connect(access.Install(senders.Get(i), routers.Get(0)));
            destinations.push_back(connect(access.Install(routers.Get(1), receivers.Get(i))).GetAddress(1));
        }
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    }

    QueueMonitor monitor;
    monitor.Attach(DynamicCast<PointToPointNetDevice>(bottleneck.Get(0))->GetQueue());

    std::vector<Flow> flows(o.flows);
    for (uint32_t i = 0; i < o.flows; ++i)
    {
        Flow& flow = flows[i];
        flow.startS = i * o.staggerS;
        flow.stopS = o.durationS > 0 ? std::min(flow.startS + o.durationS, o.seconds) : o.seconds;
        const Ptr<Node> from = senders.Get(o.direct ? 0 : i);
        const Ptr<Node> to = receivers.Get(o.direct ? 0 : i);
        const uint16_t port = 5000 + i;

        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        flow.sink = DynamicCast<PacketSink>(sink.Install(to).Get(0));

        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(destinations[i], port));
        bulk.SetAttribute("SendSize", UintegerValue(PAYLOAD));
        ApplicationContainer app = bulk.Install(from);
        app.Start(Seconds(flow.startS));
        Simulator::Schedule(Seconds(flow.startS) + NanoSeconds(1), [&flow, app] {
            DynamicCast<BulkSendApplication>(app.Get(0))
                ->GetSocket()
                ->TraceConnectWithoutContext("CongState", MakeBoundCallback(&CountEvent, &flow));
        });

        Simulator::Schedule(Seconds(flow.stopS), [&flow] { flow.bytesAtStop = flow.sink->GetTotalRx(); });
        if (flow.stopS < o.seconds)
        {
            Simulator::Schedule(Seconds(flow.stopS), &TakeDown, from);
        }
    }
    Simulator::Schedule(Seconds(o.warmupS), [&] {
        monitor.Mark();
        for (Flow& flow : flows)
        {
            flow.bytesAtWarmup = flow.sink->GetTotalRx();
        }
    });

    Simulator::Stop(Seconds(o.seconds) + NanoSeconds(1));
    const double cpuBefore = CpuSeconds();
    const auto wallBefore = std::chrono::steady_clock::now();
    Simulator::Run();
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - wallBefore).count();
    const double cpu = CpuSeconds() - cpuBefore;
    const uint64_t events = Simulator::GetEventCount();

    std::printf("{\n  \"rate_mbps\": %g, \"rtt_ms\": %g, \"buffer_packets\": %u, \"cc\": \"%s\", \"hystart\": %s, "
                "\"delack\": %u, \"recovery\": \"%s\", \"direct\": %s, \"seconds\": %g, \"warmup_s\": %g,\n",
                o.rate, o.rttMs, o.bufferPackets, o.cc.c_str(), o.hystart ? "true" : "false", o.delack,
                o.recovery.c_str(), o.direct ? "true" : "false", o.seconds, o.warmupS);
    std::printf("  \"flows\": [");
    for (size_t i = 0; i < flows.size(); ++i)
    {
        const Flow& flow = flows[i];
        const double steadyFrom = std::max(flow.startS, o.warmupS);
        const double steady = flow.stopS > steadyFrom
                                  ? 8e-6 * (flow.bytesAtStop - flow.bytesAtWarmup) / (flow.stopS - steadyFrom)
                                  : 0.0;
        std::printf("%s\n    {\"start_s\": %g, \"stop_s\": %g, \"delivered_bytes\": %lu, \"goodput_mbps\": %.6f, "
                    "\"goodput_steady_mbps\": %.6f, \"recoveries\": %u, \"timeouts\": %u}",
                    i ? "," : "", flow.startS, flow.stopS, flow.bytesAtStop,
                    8e-6 * flow.bytesAtStop / (flow.stopS - flow.startS), steady, flow.recoveries,
                    flow.timeouts);
    }
    std::printf("\n  ],\n");
    monitor.Print("total", false);
    monitor.Print("steady", true);
    std::printf("  \"cost\": {\"wall_s\": %.4f, \"user_cpu_s\": %.4f, \"events\": %lu, "
                "\"simulated_s_per_wall_s\": %.3f, \"simulated_s_per_cpu_s\": %.3f}\n}\n",
                wall, cpu, events, o.seconds / wall, o.seconds / cpu);
    Simulator::Destroy();
    return 0;
}
