// One Wi-Fi cell behind a wire, in ns-3: the set-ups that tacit-peers holds tacit's simulator against.
//
// A server, a wire, an access point and clients that download (or upload): over TCP as much as goes, or datagrams at a rate
// that the air cannot carry. Times, lengths of queues and rates come as arguments, so that the program that compares says them
// once for both simulators. Here are ns-3's other settings, each with the key of tacit's scenario that it
// answers to. Prints one line of JSON; processor time is that of Simulator::Run alone, without setting up.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/propagation-module.h"
#include "ns3/spectrum-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

// The set-up to compare.
struct Wanted
{
    std::string standard = "11n";  // 11n: 40 MHz, one stream, MCS 7, short guard interval, 150 Mb/s; 11a: 54 Mb/s; 11ax; 11be
    uint32_t width = 80;           // wifi.channel-width in MHz, of 11ax and 11be
    uint32_t streams = 1;          // wifi.streams, the same
    uint32_t mcs = 11;             // wifi.mcs, the same
    uint32_t guard = 800;          // wifi.guard-interval in nanoseconds, the same
    uint32_t window = 256;         // wifi.block-ack-window, the same
    std::string transport = "tcp"; // tcp or udp
    std::string direction = "down"; // traffic.direction: down or up
    uint32_t clients = 1;
    uint32_t seed = 1;
    Time duration = Seconds(14);   // run.duration
    Time measureFrom = Seconds(4); // run.measure-from
    Time stagger = MilliSeconds(100); // clients.stagger
    uint32_t apQueue = 126;        // packets per client, with those that are in the air
    uint32_t stationQueue = 1000;  // the same of each client
    uint32_t payload = 1460;       // bytes of data in a packet
    std::string wireRate = "500Mbps"; // wired.rate
    Time wireDelay = MilliSeconds(1); // wired.delay, one way
    std::string udpRate = "150Mbps";  // of all clients together
    // The least timeout. Round trips through the queue of many clients pass 200 ms while it fills, and ns-3 then takes all
    // that is in flight for lost; a second is RFC 6298's, and ns-3's unless told.
    Time minRto = MilliSeconds(200);
    // wifi.ofdma of 11ax: off, mu-bar, aggregated-mu-bar or requests; wifi.triggers = "ack-aware" is near ns-3's rule: it asks
    // those that it just sent to; wifi.buffer-status-polls; wifi.mu-edca = "silent".
    std::string ofdma = "off";
    bool uplink = false;
    bool polls = false;
    bool silent = false;
    // The trigger a SIFS after the reports, as in tacit. Without a TXOP limit ns-3 contends for it unless told.
    bool pollsContinue = false;
    Time accessInterval = Seconds(0); // triggers without anything to send, at most so far apart
    Time reportLifetime = MilliSeconds(20); // how long a buffer status report counts
    // ns-3 hands an MPDU up as it ends, while its PPDU goes on; tacit with the PPDU, as an interrupt for each does.
    bool upWithPpdu = false;
    // And so long after it. Between a PPDU and its answer the medium is idle: stations that get something at that very moment, and
    // whose backoff is over, draw none, and several send at once a SIFS and AIFSN slots after the answer. No host is so quick.
    Time upAfter = Seconds(0);
    // wifi.txop-limit of all stations, in units of 32 us. Within it ns-3 reserves the rest of the TXOP with every frame, and gives
    // back what is left with a CF-End.
    Time txopLimit = Seconds(0);
    // After a missing Block Ack a Block Ack Request, as in tacit, or the MPDUs again. ns-3 sends requests over 20 MHz, and what
    // follows in their TXOP too.
    bool requests = true;
    uint32_t rtsAbove = 4692480; // wifi.rts-threshold in bytes; the longest PSDU is none
    uint32_t amsdu = 0;          // wifi.amsdu in bytes; 0 is none
    std::string category = "be"; // traffic.category of all flows: be, bk, vi or vo; its TXOP limit is txopLimit
    // A [[flow]] per client with a category and a transport of its own, such as "vo:udp,vi:udp,be:tcp". Categories have the
    // TXOP limits of 802.11-2012, as in tacit.
    std::string mix;
    // [[wifi.link]] of 11be, of all stations: band in GHz, width in MHz, streams and MCS of each, such as "5:80:1:11,6:80:1:11".
    std::string links;
    // wifi.multi-link.map: numbers from 0, such as "1" or "0,1"; empty is all.
    std::string downLinks;
    std::string upLinks;
    // wifi.multi-link.mode = "emlsr": padding and transition delay in microseconds, such as "32:64". Its radio changes the link at
    // once, as with wifi.multi-link.radio-return = "0 us".
    std::string emlsr;
    // The chains that listen on the links without the radio also send there, over 20 MHz, as ns-3 has it unless told: a PPDU of ACKs then
    // takes three times as long as at 80. Otherwise the radio comes first, as in tacit.
    bool emlsrListenersSend = true;
    uint32_t tcpBuffer = 4 << 20; // tcp.send-buffer and tcp.receive-buffer in bytes
    uint32_t wireQueue = 1000;    // wired.queue in packets
};

// A link of several.
struct Link
{
    std::string band;
    uint32_t width;
    uint32_t streams;
    uint32_t mcs;
};

// As the argument says; the callback that hands up has no other.
Time g_upAfter;

// Clients join before the first flow starts; tacit's are there from the beginning, and times are counted from here. Those that
// hear the first beacon ask at once, collide, and some give up: they ask again at a later beacon.
const Time JOINING = Seconds(1);
const Time ASKING_AGAIN = MilliSeconds(50);
const uint16_t PORT = 5001;

// An access category, a type of service that selects it (DSCP CS0, CS1, CS4 and CS6), and its usual TXOP limit.
struct Category
{
    AcIndex ac;
    uint8_t tos;
    const char* txopLimit;
};

const std::map<std::string, Category> CATEGORIES = {{"be", {AC_BE, 0x00, "0us"}},
                                                    {"bk", {AC_BK, 0x20, "0us"}},
                                                    {"vi", {AC_VI, 0x80, "3008us"}},
                                                    {"vo", {AC_VO, 0xc0, "1504us"}}};

// Category and transport of a client's flow.
struct Flow
{
    std::string category;
    std::string transport;
};

// One flow per client.
std::vector<Flow>
Flows(const Wanted& wanted)
{
    if (wanted.mix.empty())
    {
        return std::vector<Flow>(wanted.clients, {wanted.category, wanted.transport});
    }
    std::vector<Flow> flows;
    std::stringstream words(wanted.mix);
    for (std::string word; std::getline(words, word, ',');)
    {
        const std::size_t colon = word.find(':');
        flows.push_back({word.substr(0, colon), word.substr(colon + 1)});
    }
    return flows;
}

// One where there are not several.
std::vector<Link>
Links(const Wanted& wanted)
{
    std::vector<Link> links;
    std::stringstream words(wanted.links);
    for (std::string word; std::getline(words, word, ',');)
    {
        std::stringstream numbers(word);
        Link link;
        char colon;
        std::getline(numbers, link.band, ':');
        numbers >> link.width >> colon >> link.streams >> colon >> link.mcs;
        links.push_back(link);
    }
    if (links.empty())
    {
        links.push_back({"5", wanted.width, wanted.streams, wanted.mcs});
    }
    return links;
}

std::string
Upper(std::string word)
{
    std::transform(word.begin(), word.end(), word.begin(), ::toupper);
    return word;
}

bool
IsHighEfficiency(const Wanted& wanted)
{
    return wanted.standard == "11ax" || wanted.standard == "11be";
}

// tcp.*: the set-up has `profile = "classic"` and congestion control CUBIC.
void
SetTcp(const Wanted& wanted)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpCubic"));
    // tcp.recovery: not the proportional rate reduction that ns-3 has by default.
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    // The default is 536. ns-3 does not take options off it: with timestamps a packet has 52 bytes more.
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(wanted.payload));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(wanted.tcpBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(wanted.tcpBuffer));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    // tcp.ack-every and ack-delay; ns-3 waits 200 ms unless told.
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    // tcp.rto-min is the least that is added to the smoothed round trip: the G of RFC 6298.
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(wanted.minRto));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
}

// How users acknowledge PPDUs that they share.
WifiAcknowledgment::Method
Acknowledgment(const std::string& ofdma)
{
    if (ofdma == "requests")
    {
        return WifiAcknowledgment::DL_MU_BAR_BA_SEQUENCE;
    }
    return ofdma == "mu-bar" ? WifiAcknowledgment::DL_MU_TF_MU_BAR : WifiAcknowledgment::DL_MU_AGGREGATE_TF;
}

void
SetWifi(const Wanted& wanted)
{
    if (wanted.ofdma != "off")
    {
        Config::SetDefault("ns3::WifiDefaultAckManager::DlMuAckSequenceType",
                           EnumValue(Acknowledgment(wanted.ofdma)));
    }
    if (wanted.uplink || wanted.txopLimit.IsStrictlyPositive() || !wanted.mix.empty())
    {
        // Basic and BSRP Triggers, and CF-Ends, are for several: the rate of broadcasts, 6 Mb/s unless told, and beacons with
        // them.
        Config::SetDefault("ns3::WifiRemoteStationManager::NonUnicastMode", StringValue("OfdmRate24Mbps"));
    }
    if (wanted.uplink)
    {
        Config::SetDefault("ns3::ApWifiMac::BsrLifetime", TimeValue(wanted.reportLifetime));
        Config::SetDefaultFailSafe("ns3::HeFrameExchangeManager::ContinueTxopAfterBsrp",
                                   BooleanValue(wanted.pollsContinue));
    }
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", UintegerValue(wanted.rtsAbove));
    Config::SetDefault("ns3::WifiRemoteStationManager::FragmentationThreshold", UintegerValue(65535));
    // wifi.retry-limit = 7 retries. ns-3 counts so for frames outside of A-MPDUs; an MPDU of an A-MPDU is sent until it
    // is too old.
    // From 3.43 on there is one limit, of attempts, for all.
    if (!Config::SetDefaultFailSafe("ns3::WifiMac::FrameRetryLimit", UintegerValue(8)))
    {
        Config::SetDefault("ns3::WifiRemoteStationManager::MaxSlrc", UintegerValue(7));
        Config::SetDefault("ns3::WifiRemoteStationManager::MaxSsrc", UintegerValue(7));
    }
    // The lifetime of packets: wifi.lifetime.
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(MilliSeconds(500)));
    // wifi.station-queue.
    Config::SetDefault("ns3::WifiMacQueue::MaxSize",
                       QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, wanted.stationQueue)));
    // The wire carries packets of 1512 bytes whole, as tcp.mtu says: 1500 would split each into two fragments.
    Config::SetDefault("ns3::PointToPointNetDevice::Mtu", UintegerValue(2296));
    // wired.queue.
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, wanted.wireQueue)));
    if (IsHighEfficiency(wanted))
    {
        // Moved from the one to the other with 3.41.
        if (!Config::SetDefaultFailSafe("ns3::WifiMac::MpduBufferSize", UintegerValue(wanted.window)))
        {
            Config::SetDefault("ns3::HeConfiguration::MpduBufferSize", UintegerValue(wanted.window));
        }
    }
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(wanted.seed);
}

// Access point first. PPDUs of several users need a channel that knows frequencies; it loses as little as the other.
template <typename Phy>
NetDeviceContainer
Install(const Wanted& wanted, Phy& phy, Ptr<Node> accessPoint, const NodeContainer& clients);

NetDeviceContainer
MakeCell(const Wanted& wanted, Ptr<Node> accessPoint, const NodeContainer& clients)
{
    // Everybody hears everybody with equal power, well above the noise: nothing is lost but in collisions, and there
    // nothing survives, which is wifi.capture = false.
    Ptr<FixedRssLossModel> loss = CreateObject<FixedRssLossModel>();
    // 4096-QAM over 160 MHz needs more than -45 dBm.
    loss->SetRss(IsHighEfficiency(wanted) ? -20 : -45);
    Ptr<PropagationDelayModel> delay = CreateObject<ConstantSpeedPropagationDelayModel>();
    if (wanted.ofdma == "off" && wanted.links.empty())
    {
        Ptr<YansWifiChannel> channel = CreateObject<YansWifiChannel>();
        channel->SetPropagationLossModel(loss);
        channel->SetPropagationDelayModel(delay);
        YansWifiPhyHelper phy;
        phy.SetChannel(channel);
        return Install(wanted, phy, accessPoint, clients);
    }
    const std::map<std::string, FrequencyRange> bands = {
        {"2.4", WIFI_SPECTRUM_2_4_GHZ}, {"5", WIFI_SPECTRUM_5_GHZ}, {"6", WIFI_SPECTRUM_6_GHZ}};
    const std::vector<Link> links = Links(wanted);
    SpectrumWifiPhyHelper phy(links.size());
    for (const Link& link : links)
    {
        Ptr<MultiModelSpectrumChannel> channel = CreateObject<MultiModelSpectrumChannel>();
        channel->AddPropagationLossModel(loss);
        channel->SetPropagationDelayModel(delay);
        phy.AddChannel(channel, bands.at(link.band));
    }
    return Install(wanted, phy, accessPoint, clients);
}

template <typename Phy>
NetDeviceContainer
Install(const Wanted& wanted, Phy& phy, Ptr<Node> accessPoint, const NodeContainer& clients)
{
    WifiHelper wifi;
    if (wanted.standard == "11n")
    {
        wifi.SetStandard(WIFI_STANDARD_80211n);
        phy.Set("ChannelSettings", StringValue("{0, 40, BAND_5GHZ, 0}"));
        phy.Set("Antennas", UintegerValue(1));
        phy.Set("MaxSupportedTxSpatialStreams", UintegerValue(1));
        phy.Set("MaxSupportedRxSpatialStreams", UintegerValue(1));
        wifi.ConfigHtOptions("ShortGuardIntervalSupported", BooleanValue(true));
        // wifi.ack-rate: Block Acks go at the highest basic rate, 24 Mb/s.
        wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("HtMcs7"),
                                     "ControlMode", StringValue("OfdmRate24Mbps"));
    }
    else if (IsHighEfficiency(wanted))
    {
        const bool eht = wanted.standard == "11be";
        wifi.SetStandard(eht ? WIFI_STANDARD_80211be : WIFI_STANDARD_80211ax);
        wifi.ConfigHeOptions("GuardInterval", TimeValue(NanoSeconds(wanted.guard)));
        if (wanted.silent)
        {
            // MU EDCA without AIFSN for 255 * 8 TU; all four timers, or there is none.
            const Time timer = MicroSeconds(255 * 8192);
            wifi.ConfigHeOptions("MuBeAifsn", UintegerValue(0), "MuBkAifsn", UintegerValue(0), "MuViAifsn",
                                 UintegerValue(0), "MuVoAifsn", UintegerValue(0), "BeMuEdcaTimer", TimeValue(timer),
                                 "BkMuEdcaTimer", TimeValue(timer), "ViMuEdcaTimer", TimeValue(timer),
                                 "VoMuEdcaTimer", TimeValue(timer));
        }
        uint8_t number = 0;
        for (const Link& link : Links(wanted))
        {
            const std::string band = link.band == "2.4" ? "2_4" : link.band;
            phy.Set(number, "ChannelSettings",
                    StringValue("{0, " + std::to_string(link.width) + ", BAND_" + band + "GHZ, 0}"));
            phy.Set(number, "Antennas", UintegerValue(link.streams));
            phy.Set(number, "MaxSupportedTxSpatialStreams", UintegerValue(link.streams));
            phy.Set(number, "MaxSupportedRxSpatialStreams", UintegerValue(link.streams));
            const std::string mode = (eht ? "EhtMcs" : "HeMcs") + std::to_string(link.mcs);
            wifi.SetRemoteStationManager(number++, "ns3::ConstantRateWifiManager", "DataMode", StringValue(mode),
                                         "ControlMode", StringValue("OfdmRate24Mbps"));
        }
        if (!wanted.downLinks.empty() || !wanted.upLinks.empty())
        {
            const std::string all = "0,1,2,3,4,5,6,7 ";
            wifi.ConfigEhtOptions("TidToLinkMappingNegSupport", EnumValue(WifiTidToLinkMappingNegSupport::ANY_LINK_SET),
                                  "TidToLinkMappingDl", StringValue(all + wanted.downLinks), "TidToLinkMappingUl",
                                  StringValue(all + wanted.upLinks));
        }
        if (!wanted.emlsr.empty())
        {
            wifi.ConfigEhtOptions("EmlsrActivated", BooleanValue(true));
        }
    }
    else
    {
        wifi.SetStandard(WIFI_STANDARD_80211a);
        wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("OfdmRate54Mbps"),
                                     "ControlMode", StringValue("OfdmRate24Mbps"));
    }
    WifiMacHelper mac;
    Ssid ssid("cell");
    // A-MPDUs up to 65535 bytes, which is 42 full packets, or the limits of HE and EHT.
    const uint32_t ampdu = wanted.standard == "11be" ? 15523200 : wanted.standard == "11ax" ? 6500631 : 65535;
    for (const Flow& flow : Flows(wanted))
    {
        const std::string upper = Upper(flow.category);
        Config::SetDefault("ns3::WifiMac::" + upper + "_MaxAmsduSize", UintegerValue(wanted.amsdu));
        Config::SetDefault("ns3::WifiMac::" + upper + "_MaxAmpduSize", UintegerValue(ampdu));
        if (wanted.standard != "11a")
        {
            // Clients take the limit of the access point from its beacons.
            const Category& category = CATEGORIES.at(flow.category);
            const std::string told = std::to_string(wanted.txopLimit.GetMicroSeconds()) + "us";
            const std::string limit = wanted.mix.empty() ? told : category.txopLimit;
            // One for each link.
            std::string limits = limit;
            for (std::size_t link = 1; link < Links(wanted).size(); link++)
            {
                limits += "," + limit;
            }
            mac.SetEdca(category.ac, "TxopLimits", StringValue(limits),
                        "UseExplicitBarAfterMissedBlockAck", BooleanValue(wanted.requests));
        }
    }
    mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid), "AssocRequestTimeout", TimeValue(ASKING_AGAIN));
    if (!wanted.emlsr.empty())
    {
        const std::size_t colon = wanted.emlsr.find(':');
        mac.SetEmlsrManager("ns3::AdvancedEmlsrManager", "EmlsrLinkSet", StringValue("0,1"), "EmlsrPaddingDelay",
                            StringValue(wanted.emlsr.substr(0, colon) + "us"), "EmlsrTransitionDelay",
                            StringValue(wanted.emlsr.substr(colon + 1) + "us"), "AuxPhyTxCapable",
                            BooleanValue(wanted.emlsrListenersSend));
        phy.Set("ChannelSwitchDelay", TimeValue(Seconds(0)));
    }
    NetDeviceContainer devices;
    NetDeviceContainer stations = wifi.Install(phy, mac, clients);
    mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid), "BeaconInterval", TimeValue(MicroSeconds(102400)));
    if (wanted.ofdma != "off")
    {
        mac.SetMultiUserScheduler("ns3::RrMultiUserScheduler", "NStations", UintegerValue(16), "EnableUlOfdma",
                                  BooleanValue(wanted.uplink), "EnableBsrp", BooleanValue(wanted.polls),
                                  "AccessReqInterval", TimeValue(wanted.accessInterval));
    }
    devices.Add(wifi.Install(phy, mac, accessPoint));
    devices.Add(stations);
    // One queue per category for all clients, served in the order of arrival: wifi.ap-scheduler = "fcfs".
    Ptr<WifiMac> apMac = DynamicCast<WifiNetDevice>(devices.Get(0))->GetMac();
    for (const Flow& flow : Flows(wanted))
    {
        Ptr<WifiMacQueue> queue =
            apMac->GetTxopQueue(wanted.standard == "11a" ? AC_BE_NQOS : CATEGORIES.at(flow.category).ac);
        queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, wanted.apQueue * wanted.clients));
    }
    return devices;
}

void
Place(const NodeContainer& nodes)
{
    // A metre apart; only the delay of propagation goes by it.
    Ptr<ListPositionAllocator> places = CreateObject<ListPositionAllocator>();
    for (uint32_t index = 0; index < nodes.GetN(); index++)
    {
        places->Add(Vector(index == 0 ? 0.0 : 1.0, 0.0, 0.0));
    }
    MobilityHelper mobility;
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);
}

// Sinks, in the order of clients.
std::vector<Ptr<PacketSink>>
MakeFlows(const Wanted& wanted, Ptr<Node> server, const NodeContainer& clients, const Ipv4InterfaceContainer& cell,
          Ipv4Address serverAddress)
{
    const bool up = wanted.direction == "up";
    const std::vector<Flow> flows = Flows(wanted);
    const uint64_t datagrams = std::count_if(flows.begin(), flows.end(), [](const Flow& flow) {
        return flow.transport == "udp";
    });
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t index = 0; index < wanted.clients; index++)
    {
        const Flow& flow = flows[index];
        const bool tcp = flow.transport == "tcp";
        const std::string factory = tcp ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory";
        const UintegerValue tos(CATEGORIES.at(flow.category).tos);
        // Uploads end at a port each.
        const uint16_t port = PORT + (up ? index : 0);
        const Address address = InetSocketAddress(up ? serverAddress : cell.GetAddress(index + 1), port);
        Ptr<Node> from = up ? clients.Get(index) : server;
        PacketSinkHelper sink(factory, InetSocketAddress(Ipv4Address::GetAny(), port));
        ApplicationContainer sinkApps = sink.Install(up ? server : clients.Get(index));
        sinks.push_back(DynamicCast<PacketSink>(sinkApps.Get(0)));
        ApplicationContainer source;
        if (tcp)
        {
            BulkSendHelper bulk(factory, address);
            // In pieces of whole segments; the default of 512 bytes is a call for each third of one.
            bulk.SetAttribute("SendSize", UintegerValue(wanted.payload * 32));
            bulk.SetAttribute("Tos", tos);
            source = bulk.Install(from);
        }
        else
        {
            OnOffHelper steady(factory, address);
            const uint64_t each = DataRate(wanted.udpRate).GetBitRate() / datagrams;
            steady.SetConstantRate(DataRate(each), wanted.payload);
            steady.SetAttribute("Tos", tos);
            source = steady.Install(from);
        }
        source.Start(JOINING + wanted.stagger * index);
    }
    return sinks;
}

// Keeps the packets of a PPDU until all have arrived.
bool
HandUpWithPpdu(Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t protocol, const Address& from)
{
    const Time left = DynamicCast<WifiNetDevice>(device)->GetPhy()->GetDelayUntilIdle();
    Ptr<Node> node = device->GetNode();
    Simulator::Schedule(left + g_upAfter, [=] {
        if (protocol == Ipv4L3Protocol::PROT_NUMBER)
        {
            node->GetObject<Ipv4L3Protocol>()->Receive(device, packet, protocol, from, device->GetAddress(),
                                                       NetDevice::PACKET_HOST);
        }
        else
        {
            node->GetObject<ArpL3Protocol>()->Receive(device, packet, protocol, from, device->GetAddress(),
                                                      NetDevice::PACKET_HOST);
        }
    });
    return true;
}

// A client that has not joined gets nothing: its flow would count as one that the air does not carry.
void
CheckThatAllJoined(const NetDeviceContainer& stations)
{
    for (uint32_t index = 0; index < stations.GetN(); index++)
    {
        Ptr<WifiMac> mac = DynamicCast<WifiNetDevice>(stations.Get(index))->GetMac();
        if (!DynamicCast<StaWifiMac>(mac)->IsAssociated())
        {
            NS_FATAL_ERROR("client " << index << " has not joined when the first flow starts");
        }
    }
}

double
CpuSeconds()
{
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

// Bytes that each client's flow delivered.
std::vector<uint64_t>
Received(const std::vector<Ptr<PacketSink>>& sinks)
{
    std::vector<uint64_t> bytes;
    for (const auto& sink : sinks)
    {
        bytes.push_back(sink->GetTotalRx());
    }
    return bytes;
}

// What one side of a link sent in the measured time.
struct LinkCounts
{
    uint64_t ppdus = 0;   // of data and TCP ACKs
    uint64_t mpdus = 0;   // in them
    uint64_t retries = 0; // of these
    Time air;             // how long the PPDUs lasted
    uint16_t narrowest = UINT16_MAX; // channel width of a PPDU in MHz
    uint64_t calls = 0;   // triggers, such as the MU-RTS that calls a client with one radio
    uint64_t timeouts = 0; // frames without the response that they ask for
    uint64_t calls_unanswered = 0; // calls among these
};

// By centre frequency in MHz, and by side: the access point's and that of all clients.
std::map<uint16_t, std::array<LinkCounts, 2>> g_links;
Time g_countFrom;

void
CountSent(Ptr<WifiPhy> phy, bool isClient, WifiConstPsduMap psdus, WifiTxVector mode, double)
{
    if (Simulator::Now() < g_countFrom)
    {
        return;
    }
    LinkCounts& counts = g_links[phy->GetOperatingChannel().GetFrequency()][isClient];
    for (const auto& [station, psdu] : psdus)
    {
        const WifiMacHeader& header = psdu->GetHeader(0);
        counts.calls += header.IsTrigger();
        if (!header.IsQosData() || !header.HasData())
        {
            continue;
        }
        counts.ppdus++;
        counts.mpdus += psdu->GetNMpdus();
        counts.air += WifiPhy::CalculateTxDuration(psdus, mode, phy->GetPhyBand());
        counts.narrowest = std::min<uint16_t>(counts.narrowest, mode.GetChannelWidth());
        for (const auto& mpdu : *PeekPointer(psdu))
        {
            counts.retries += mpdu->GetHeader().IsRetry();
        }
    }
}

void
CountTimeout(Ptr<WifiMac> mac, bool isClient, uint8_t, Ptr<const WifiPsdu> psdu, const WifiTxVector&)
{
    const auto link = mac->GetLinkIdByAddress(psdu->GetAddr2());
    if (Simulator::Now() < g_countFrom || !link)
    {
        return;
    }
    LinkCounts& counts = g_links[mac->GetWifiPhy(*link)->GetOperatingChannel().GetFrequency()][isClient];
    counts.timeouts++;
    counts.calls_unanswered += psdu->GetHeader(0).IsTrigger();
}

// A response that did not come, for a PPDU to several stations: an MU-RTS is one.
void
CountTimeoutOfMany(Ptr<WifiMac> mac,
                   bool isClient,
                   uint8_t reason,
                   WifiPsduMap* psdus,
                   const std::set<Mac48Address>*,
                   std::size_t)
{
    for (const auto& [station, psdu] : *psdus)
    {
        CountTimeout(mac, isClient, reason, psdu, WifiTxVector());
    }
}

void
CountOn(Ptr<NetDevice> device, bool isClient)
{
    auto wifi = DynamicCast<WifiNetDevice>(device);
    for (uint8_t phy = 0; phy < wifi->GetNPhys(); phy++)
    {
        wifi->GetPhy(phy)->TraceConnectWithoutContext(
            "PhyTxPsduBegin",
            MakeBoundCallback(&CountSent, wifi->GetPhy(phy), isClient));
    }
    wifi->GetMac()->TraceConnectWithoutContext("PsduResponseTimeout",
                                               MakeBoundCallback(&CountTimeout, wifi->GetMac(), isClient));
    wifi->GetMac()->TraceConnectWithoutContext(
        "PsduMapResponseTimeout",
        MakeBoundCallback(&CountTimeoutOfMany, wifi->GetMac(), isClient));
}

std::string
CountsAsJson(double seconds)
{
    std::ostringstream json;
    for (const auto& [mhz, sides] : g_links)
    {
        json << (json.tellp() ? "," : "") << "{\"mhz\":" << mhz;
        for (std::size_t side = 0; side < sides.size(); side++)
        {
            const LinkCounts& own = sides[side];
            json << (side == 0 ? ",\"down\":{" : ",\"up\":{") << "\"ppdus_per_s\":" << own.ppdus / seconds
                 << ",\"mpdus_per_ppdu\":" << double(own.mpdus) / std::max<uint64_t>(own.ppdus, 1)
                 << ",\"ppdu_us\":" << own.air.GetMicroSeconds() / double(std::max<uint64_t>(own.ppdus, 1))
                 << ",\"narrowest_mhz\":" << (own.ppdus ? own.narrowest : 0) << ",\"retry_share\":" << double(own.retries) / std::max<uint64_t>(own.mpdus, 1)
                 << ",\"timeouts_per_s\":" << own.timeouts / seconds << ",\"calls_per_s\":" << own.calls / seconds
                 << ",\"calls_unanswered_per_s\":" << own.calls_unanswered / seconds << "}";
        }
        json << "}";
    }
    return json.str();
}

} // namespace

int
main(int argc, char* argv[])
{
    Wanted wanted;
    CommandLine line(__FILE__);
    line.AddValue("standard", "11n, 11a, 11ax or 11be", wanted.standard);
    line.AddValue("width", "of 11ax and 11be: MHz", wanted.width);
    line.AddValue("streams", "of 11ax and 11be", wanted.streams);
    line.AddValue("mcs", "of 11ax and 11be", wanted.mcs);
    line.AddValue("guard", "of 11ax and 11be: guard interval in nanoseconds", wanted.guard);
    line.AddValue("window", "of 11ax and 11be: MPDUs under a Block Ack agreement", wanted.window);
    line.AddValue("ofdma", "of 11ax: off, mu-bar, aggregated-mu-bar or requests", wanted.ofdma);
    line.AddValue("uplink", "the access point asks those that it sent to", wanted.uplink);
    line.AddValue("polls", "and asks how much they have before", wanted.polls);
    line.AddValue("pollsContinue", "and asks for it at once, not by an access of its own", wanted.pollsContinue);
    line.AddValue("silent", "clients that were asked do not contend", wanted.silent);
    line.AddValue("accessInterval", "it asks so often without anything to send", wanted.accessInterval);
    line.AddValue("reportLifetime", "how long a buffer status report counts", wanted.reportLifetime);
    line.AddValue("transport", "tcp or udp", wanted.transport);
    line.AddValue("direction", "down or up", wanted.direction);
    line.AddValue("clients", "how many", wanted.clients);
    line.AddValue("seed", "run number of the random streams", wanted.seed);
    line.AddValue("duration", "simulated time", wanted.duration);
    line.AddValue("measureFrom", "when goodput begins to count", wanted.measureFrom);
    line.AddValue("stagger", "time between the starts of clients", wanted.stagger);
    line.AddValue("apQueue", "packets per client at the access point", wanted.apQueue);
    line.AddValue("stationQueue", "packets of each client", wanted.stationQueue);
    line.AddValue("payload", "bytes of data in a packet", wanted.payload);
    line.AddValue("wireRate", "rate of the wire", wanted.wireRate);
    line.AddValue("wireDelay", "delay of the wire, one way", wanted.wireDelay);
    line.AddValue("udpRate", "datagrams of all clients together", wanted.udpRate);
    line.AddValue("minRto", "least retransmission timeout", wanted.minRto);
    line.AddValue("upWithPpdu", "hand MPDUs up when their PPDU ends, not each when it ends", wanted.upWithPpdu);
    line.AddValue("upAfter", "so long after it", wanted.upAfter);
    line.AddValue("txopLimit", "TXOP limit of all stations", wanted.txopLimit);
    line.AddValue("requests", "a Block Ack Request after a missing Block Ack", wanted.requests);
    line.AddValue("rtsAbove", "RTS before PSDUs longer than so many bytes", wanted.rtsAbove);
    line.AddValue("amsdu", "most bytes of an A-MSDU", wanted.amsdu);
    line.AddValue("category", "access category of all flows: be, bk, vi or vo", wanted.category);
    line.AddValue("mix", "category and transport of each client's flow, such as vo:udp,vi:udp,be:tcp", wanted.mix);
    line.AddValue("links", "band:width:streams:MCS of each link of 11be, such as 5:80:1:11,6:80:1:11", wanted.links);
    line.AddValue("downLinks", "the links of downlink traffic, from 0, such as 0,1", wanted.downLinks);
    line.AddValue("upLinks", "the links of uplink traffic", wanted.upLinks);
    line.AddValue("emlsrListenersSend", "what listens on a link without the radio also sends there", wanted.emlsrListenersSend);
    line.AddValue("emlsr", "clients with one radio: padding:transition in us, such as 32:64", wanted.emlsr);
    line.AddValue("tcpBuffer", "bytes of TCP's buffers", wanted.tcpBuffer);
    line.AddValue("wireQueue", "packets of each queue of the wire", wanted.wireQueue);
    line.Parse(argc, argv);
    g_upAfter = wanted.upAfter;
    wanted.clients = Flows(wanted).size();

    SetTcp(wanted);
    SetWifi(wanted);
    Ptr<Node> server = CreateObject<Node>();
    Ptr<Node> accessPoint = CreateObject<Node>();
    NodeContainer clients;
    clients.Create(wanted.clients);
    NodeContainer wireless(accessPoint, clients);
    Place(wireless);

    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue(wanted.wireRate));
    wire.SetChannelAttribute("Delay", TimeValue(wanted.wireDelay));
    NetDeviceContainer wireDevices = wire.Install(server, accessPoint);
    NetDeviceContainer cellDevices = MakeCell(wanted, accessPoint, clients);

    InternetStackHelper internet;
    internet.InstallAll();
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.1.0.0", "255.255.255.0");
    Ipv4InterfaceContainer wired = addresses.Assign(wireDevices);
    addresses.SetBase("10.2.0.0", "255.255.252.0");
    Ipv4InterfaceContainer cell = addresses.Assign(cellDevices);
    // Giving addresses puts FQ-CoDel before every device: tacit's queues drop at the tail, and there is one for each hop.
    TrafficControlHelper::Default().Uninstall(wireDevices);
    TrafficControlHelper::Default().Uninstall(cellDevices);
    // Global routing knows no device of several links.
    Ipv4StaticRoutingHelper routes;
    routes.GetStaticRouting(server->GetObject<Ipv4>())->SetDefaultRoute(wired.GetAddress(1), 1);
    for (uint32_t index = 0; index < clients.GetN(); index++)
    {
        routes.GetStaticRouting(clients.Get(index)->GetObject<Ipv4>())->SetDefaultRoute(cell.GetAddress(0), 1);
    }
    // Each host knows all addresses, as in tacit. A request that collides is a broadcast, which the MAC does not repeat; ARP asks
    // again after a second, and not for long.
    NeighborCacheHelper().PopulateNeighborCache();
    for (uint32_t index = 0; wanted.upWithPpdu && index < cellDevices.GetN(); index++)
    {
        cellDevices.Get(index)->SetReceiveCallback(MakeCallback(&HandUpWithPpdu));
    }

    std::vector<Ptr<PacketSink>> sinks = MakeFlows(wanted, server, clients, cell, wired.GetAddress(0));
    std::vector<uint64_t> before(sinks.size());
    NetDeviceContainer stations;
    for (uint32_t index = 1; index < cellDevices.GetN(); index++)
    {
        stations.Add(cellDevices.Get(index));
    }
    g_countFrom = JOINING + wanted.measureFrom;
    for (uint32_t index = 0; index < cellDevices.GetN(); index++)
    {
        CountOn(cellDevices.Get(index), index > 0);
    }
    Simulator::Schedule(JOINING, [&] { CheckThatAllJoined(stations); });
    Simulator::Schedule(JOINING + wanted.measureFrom, [&] { before = Received(sinks); });
    Simulator::Stop(JOINING + wanted.duration);

    const double cpuBefore = CpuSeconds();
    const auto began = std::chrono::steady_clock::now();
    Simulator::Run();
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const double cpu = CpuSeconds() - cpuBefore;

    const double measured = (wanted.duration - wanted.measureFrom).GetSeconds();
    const std::vector<uint64_t> after = Received(sinks);
    double goodput = 0;
    std::string each;
    for (std::size_t index = 0; index < after.size(); index++)
    {
        const double bps = (after[index] - before[index]) * 8 / measured;
        goodput += bps;
        each += (index == 0 ? "" : ",") + std::to_string(static_cast<uint64_t>(bps));
    }
    std::printf("{\"goodput_bps\":%.0f,\"simulated_s\":%g,\"measured_s\":%g,\"cpu_s\":%.6f,\"wall_s\":%.6f,"
                "\"events\":%llu,\"each_bps\":[%s],\"links\":[%s]}\n",
                goodput, wanted.duration.GetSeconds(), measured, cpu, wall,
                static_cast<unsigned long long>(Simulator::GetEventCount()), each.c_str(),
                CountsAsJson(measured).c_str());
    Simulator::Destroy();
    return 0;
}
